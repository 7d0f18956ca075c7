// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/model.h"
#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/calibration/typical_issue.h"
#include "sim/costs/cost_model.h"
#include "tests/costs/works.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::works;

namespace {

Work random_work(std::mt19937& random) {
  std::uniform_int_distribution<int> kind(0, 8), phase(0, 3), channels(1, 2048), kernel(1, 7), size(1, 112);
  std::uniform_real_distribution<double> exponent(3, 11);
  Work w;
  w.kind = static_cast<KernelKind>(kind(random));
  w.phase = static_cast<Phase>(phase(random));
  w.flops_per_image = std::pow(10, exponent(random));
  w.flops_fixed = random() % 3 == 0 ? std::pow(10, exponent(random)) : 0;
  w.bytes_per_image = std::pow(10, exponent(random) - 1);
  w.bytes_fixed = random() % 2 == 0 ? std::pow(10, exponent(random) - 1) : 0;
  w.in_channels = channels(random);
  w.out_channels = channels(random);
  w.kernel_h = kernel(random);
  w.kernel_w = kernel(random);
  w.stride = 1 + static_cast<int>(random() % 2);
  w.groups = random() % 4 == 0 ? 2 : 1;
  w.out_h = size(random);
  w.out_w = size(random);
  return w;
}

DeviceType random_device(std::mt19937& random) {
  std::uniform_real_distribution<double> share(0.05, 2.0), half(0, 1000);
  DeviceType d = ideal();
  d.launch_overhead_s = share(random) * 1e-5;
  for (Efficiency& e : d.efficiency) {
    for (double& value : e.compute) value = share(random);
    for (double& value : e.bandwidth) value = share(random);
    e.data_gradient = share(random);
    e.weight_gradient = share(random);
    e.half_outputs = half(random);
    e.half_reduction = half(random);
    e.half_rows = half(random);
    e.half_weight_outputs = half(random);
    e.half_weight_reduction = half(random);
    e.half_weight_rows = half(random);
    e.half_matmul_rows = half(random);
    e.half_winograd = random() % 2 == 0 ? half(random) : 0;
  }
  return d;
}

}  // namespace

TEST_CASE("efficiency 1 is exactly the roofline") {
  const DeviceType d = ideal();
  // 8 images x 2e9 FLOPs / 10e12 FLOP/s = 1.6 ms; 8 x 1e6 B / 500e9 B/s = 16 us
  CHECK(operation_time_s(convolution(2e9, 1e6), 8, Precision::fp32, d) == 8 * 2e9 / 10e12);
  // 8 x 1e6 FLOPs / 10e12 = 0.8 us; 8 x 1e7 B / 500e9 = 160 us
  CHECK(operation_time_s(convolution(1e6, 1e7), 8, Precision::fp32, d) == 8 * 1e7 / 500e9);
  Work fixed = convolution(0, 0);
  fixed.kind = KernelKind::update;
  fixed.bytes_fixed = 5e8;
  CHECK(operation_time_s(fixed, 8, Precision::fp32, d) == 1e-3);
  CHECK(operation_time_s(fixed, 512, Precision::fp32, d) == 1e-3);
}

TEST_CASE("each precision has its own peak") {
  CHECK(operation_time_s(convolution(2e9, 0), 8, Precision::fp16, ideal()) == 8 * 2e9 / 40e12);
}

TEST_CASE("the launch overhead is paid once an operation, and not by one without work") {
  DeviceType d = ideal();
  d.launch_overhead_s = 5e-6;
  CHECK(operation_time_s(convolution(2e9, 1e6), 8, Precision::fp32, d) ==
        approx(5e-6 + 1.6e-3).epsilon(1e-15));
  CHECK(operation_time_s(convolution(0, 0), 8, Precision::fp32, d) == 0);
}

TEST_CASE("the share of peak is the product of kind, phase and three saturations") {
  Efficiency e;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_3x3)] = 1.5;
  e.weight_gradient = 0.8;
  e.half_outputs = 32;
  e.half_reduction = 64;
  e.half_rows = 980;
  Work w = convolution(1e9, 1);
  // 128 outputs: 128/160 = 0.8; dot products of 64 x 3 x 3 = 576: 576/640 = 0.9; 2 images of 28 x 28 = 1568
  // rows, and 160/64 = 2.5 tiles across: 3920/4900 = 0.8; 1.5 x 0.8 x 0.9 x 0.8 = 0.864
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(0.864).epsilon(1e-14));
  w.phase = Phase::weight_gradient;
  e.half_weight_outputs = 32;
  e.half_weight_reduction = 64;
  e.half_weight_rows = 392;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(0.864 * 0.8).epsilon(1e-14));
  // Halves of its own: 128/256 x 576/768 x 1568/3136, and 1.5 x 0.8 before them
  e.half_weight_outputs = 128;
  e.half_weight_reduction = 192;
  e.half_weight_rows = 1568;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(1.2 * 0.1875).epsilon(1e-14));
  e.half_weight_outputs = 32;
  e.half_weight_reduction = 64;
  e.half_weight_rows = 392;
  w.groups = 2;  // another class, and half the outputs and the dot products: 64/96 x 288/352 x 0.8 x 0.8
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) ==
        approx(64.0 / 96 * 288 / 352 * 0.8 * 0.8).epsilon(1e-14));
}

TEST_CASE("a group is as narrow as the fewer of its inputs and outputs") {
  // 16 groups of 4 inputs and 16 outputs, or the other way round: (4 + 0.5 x 4) / (4 + 4) of a product.
  Efficiency e;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_grouped)] = 0.5;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_depthwise)] = 0.01;
  e.half_group = 4;
  for (const auto& [in, out] : {std::pair{64, 256}, std::pair{256, 64}}) {
    Work w = convolution(1e9, 1);
    w.in_channels = in;
    w.out_channels = out;
    w.groups = 16;
    CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(0.75).epsilon(1e-14));
  }
}

TEST_CASE("a plain product has rows of its own in every phase, times its tiles of 64 columns") {
  Efficiency e;
  e.half_rows = 1e6;
  e.half_weight_rows = 1e6;
  e.half_matmul_rows = 48;
  Work w;
  w.kind = KernelKind::matmul;
  w.flops_per_image = 1e6;
  w.in_channels = w.out_channels = 1024;
  for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient}) {
    w.phase = phase;
    CHECK(compute_efficiency(w, 16, Precision::fp32, e) == approx(256.0 / 304).epsilon(1e-14));
  }
  // What counts is how many tiles there are, not which side of the result they lie along.
  w.phase = Phase::forward;
  w.out_channels = 2048;
  CHECK(compute_efficiency(w, 8, Precision::fp32, e) == approx(256.0 / 304).epsilon(1e-14));
  w.out_channels = 32;  // no less than one tile
  CHECK(compute_efficiency(w, 48, Precision::fp32, e) == approx(0.5).epsilon(1e-14));
}

TEST_CASE("Winograd's algorithm is for channels first: with channels last the general one is left") {
  Efficiency e;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_3x3)] = 2;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_other)] = 0.5;
  e.half_winograd = 64;
  Work w = convolution(1e9, 1);
  CHECK(compute_efficiency(w, 2, Precision::fp32, e, Layout::nchw) > 0.5);
  CHECK(compute_efficiency(w, 2, Precision::fp32, e, Layout::nhwc) == 0.5);
  e.half_winograd = 0;  // a share whatever the algorithm
  CHECK(compute_efficiency(w, 2, Precision::fp32, e, Layout::nhwc) == 2);
}

TEST_CASE("TensorFlow turns graphs in values of four bytes into channels first, and only these") {
  for (std::size_t f = 0; f < framework_count; ++f)
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
      for (const ExecutionMode execution :
           {ExecutionMode::eager, ExecutionMode::graph, ExecutionMode::compiled})
        for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
          TrainingOptions options;
          options.framework = static_cast<Framework>(f);
          options.precision = precision;
          options.execution = execution;
          options.layout = layout;
          CAPTURE(framework_names[f]);
          CAPTURE(to_string(precision));
          CAPTURE(to_string(execution));
          const std::string_view name = framework_names[f];
          const bool turned = (name == "tensorflow" || name == "tensorflow1") &&
                              execution != ExecutionMode::eager &&
                              (precision == Precision::fp32 || precision == Precision::tf32);
          const Layout expected = turned ? Layout::nchw : layout;
          CHECK(Software(options).layout == expected);
          CHECK(Software(options).costs.convolution ==
                software_costs(options.framework, execution, expected).convolution);
          options.on_tokens = true;
          CHECK(Software(options).layout == Layout::nhwc);
        }
}

TEST_CASE("what computes on tokens takes as long in either layout of convolutions") {
  const auto step_s = [](const std::string& name, Layout layout) {
    TrainingOptions options;
    options.precision = Precision::fp16;
    options.layout = layout;
    const TrainingGraph graph = build_training_graph(read_model(parse_yaml(name, "model")), options);
    const DeviceType device = load_device("rtx-3090", {"test", 1, 1});
    const CostModel cost{Software(graph.options)};
    double sum_s = 0;
    for (const Operation& op : graph.operations) sum_s += cost.time_s(op.work, 32, device);
    return sum_s;
  };
  for (const char* name : {"vit_b_16", "swin_t", "mixer_s_16"})
    CHECK_MESSAGE(step_s(name, Layout::nchw) == step_s(name, Layout::nhwc), name);
  CHECK(step_s("resnet50", Layout::nchw) != step_s("resnet50", Layout::nhwc));
}

TEST_CASE("what is fused has no launch and no issue, by compilers and with normalizations") {
  std::mt19937 random(29);
  DeviceType device = ideal();
  device.issue_factor = 1;
  device.launch_overhead_s = 3e-6;
  Software eager, compiled, normalizing;
  for (Software* software : {&eager, &compiled, &normalizing}) {
    software->costs.issue_forward_s = software->costs.issue_backward_s = 20e-6;
    software->costs.fused = software == &eager ? 1 : 0.25;
  }
  compiled.execution = ExecutionMode::compiled;
  normalizing.execution = ExecutionMode::graph;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    Work w = random_work(random);
    if (w.phase == Phase::update || (w.kind == KernelKind::normalization && w.phase != Phase::forward))
      continue;
    const double alone_s = operation_time_s(w, 4, eager, device);
    for (const Fusion fusion : {Fusion::none, Fusion::chain, Fusion::normalization}) {
      w.fusion = fusion;
      CHECK(operation_time_s(w, 4, eager, device) == alone_s);
      const double part_s = 0.25 * (alone_s - device.launch_overhead_s);
      const bool by_compiler = fusion != Fusion::none, by_kernel = fusion == Fusion::normalization;
      CHECK(operation_time_s(w, 4, compiled, device) == approx(by_compiler ? part_s : alone_s));
      CHECK(operation_time_s(w, 4, normalizing, device) == approx(by_kernel ? part_s : alone_s));
      CHECK((issue_time_s(w, 4, compiled, device) == 0) == by_compiler);
      CHECK((issue_time_s(w, 4, normalizing, device) == 0) == by_kernel);
      CHECK(issue_time_s(w, 4, eager, device) > 0);
    }
  }
}

TEST_CASE(
    "of a residual block's sums and activations, fused kernels read one branch and write its gradient") {
  const TrainingGraph graph =
      build_training_graph(read_model(parse_yaml("name: resnet50", "network.yaml")), {});
  double alone = 0, left = 0;
  for (const Operation& operation : graph.operations) {
    const Work& work = operation.work;
    const Layer& layer = graph.model.layers[operation.layer];
    CHECK((work.fusion == Fusion::none || work.kind == KernelKind::elementwise));
    if (work.fusion != Fusion::normalization) continue;
    alone += work.bytes_per_image;
    if (std::holds_alternative<Add>(layer.kind))
      left += 2 * 4.0 * static_cast<double>(elements(layer.output));
  }
  CHECK(left / alone == approx(calibration::typical_left_of_fused).epsilon(0.12));
}

TEST_CASE("a framework's depthwise kernels have a factor of their own") {
  DeviceType device = ideal();
  device.issue_factor = 1;
  Software software;
  software.costs.depthwise = 3;
  Work w = convolution(1e9, 1);
  const double dense_s = operation_time_s(w, 2, software, device);
  CHECK(dense_s == operation_time_s(w, 2, Software(), device));
  w.kind = KernelKind::depthwise_convolution;
  CHECK(operation_time_s(w, 2, software, device) == approx(3 * operation_time_s(w, 2, Software(), device)));
}

TEST_CASE("filters are put in order at their own share of bandwidth, where software costs something") {
  DeviceType device = ideal();
  Work w = convolution(1e9, 1);
  const double before_s = operation_time_s(w, 2, Software(), device);
  w.reordered_bytes = 3e6;
  CHECK(operation_time_s(w, 2, Software(), device) == before_s);  // no software, no orders
  device.issue_factor = 1;
  device.efficiency.front().filter_order = 0.25;
  CHECK(operation_time_s(w, 2, Software(), device) ==
        approx(before_s + 3e6 / (0.25 * device.memory_bandwidth_Bps)));
}

TEST_CASE("a framework's products, and these alone, have their factor on GPUs of the Kepler generation") {
  DeviceType device = ideal();
  device.issue_factor = 1;
  Software software;
  software.costs.kepler = 2;
  Work product = convolution(1e9, 1), sum = product;
  sum.kind = KernelKind::elementwise;
  for (const std::string generation : {"kepler", "maxwell"}) {
    device.generation = generation;
    const double factor = generation == "kepler" ? 2 : 1;
    CHECK(operation_time_s(product, 2, software, device) ==
          approx(factor * operation_time_s(product, 2, Software(), device)));
    CHECK(operation_time_s(sum, 2, software, device) == operation_time_s(sum, 2, Software(), device));
  }
}

TEST_CASE("data gradients of strided convolutions, and only these, have their factor") {
  Efficiency e;
  e.strided_data_gradient = 0.4;
  Work w = convolution(1e9, 1);
  w.stride = 2;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == 1);
  w.phase = Phase::data_gradient;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == 0.4);
  w.phase = Phase::weight_gradient;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == 1);
  w.phase = Phase::data_gradient;
  w.stride = 1;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == 1);
}

TEST_CASE("a 3x3 convolution runs on the faster of Winograd's algorithm and the general one") {
  Efficiency e;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_3x3)] = 2;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_other)] = 0.5;
  e.half_winograd = 64;
  e.half_outputs = 128;
  // 64 > 128 channels: Winograd's 2 x 64/128 x 128/192 = 2/3; general 0.5 x 128/256
  Work w = convolution(1e9, 1);
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(2.0 / 3).epsilon(1e-14));
  // 3 > 64: Winograd's 2 x 3/67 x 64/128 = 0.0448; general 0.5 x 64/192 = 0.167
  w.in_channels = 3;
  w.out_channels = 64;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(0.5 / 3).epsilon(1e-14));
  // without it the class alone: 2 x 64/192
  e.half_winograd = 0;
  CHECK(compute_efficiency(w, 2, Precision::fp32, e) == approx(2.0 / 3).epsilon(1e-14));
}

TEST_CASE("a tile of Winograd's algorithm over the edge of an image takes as long as a whole one") {
  Efficiency e;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_3x3)] = 2;
  e.compute[static_cast<std::size_t>(KernelClass::convolution_other)] = 0.4;
  e.half_winograd = 1;
  const auto time_over_peak = [&](std::int64_t height, std::int64_t width) {
    Work w = convolution(static_cast<double>(height * width), 1);
    w.out_h = height;
    w.out_w = width;
    return w.flops_per_image / compute_efficiency(w, 1, Precision::fp32, e);
  };
  for (std::int64_t length = 2; length <= 60; length += 2) {
    CAPTURE(length);
    CHECK(time_over_peak(length - 1, length) == approx(time_over_peak(length, length)).epsilon(1e-12));
    // Twice as many tiles
    CHECK(time_over_peak(length, 2 * length) == approx(2 * time_over_peak(length, length)).epsilon(1e-12));
  }
  // One pixel of a tile of four would have 2/4 of peak and less by its channels: more than the general one's 0.4.
  const double of_tile = time_over_peak(2, 2);
  CHECK(time_over_peak(1, 1) == approx(of_tile).epsilon(1e-12));
  // A general algorithm beyond that is faster.
  e.compute[static_cast<std::size_t>(KernelClass::convolution_other)] = 0.8;
  CHECK(time_over_peak(1, 1) == approx(1 / 0.8).epsilon(1e-12));
  CHECK(time_over_peak(2, 2) == approx(of_tile).epsilon(1e-12));
  e.half_winograd = 0;  // a share whatever the algorithm
  CHECK(time_over_peak(3, 3) == approx(9.0 / 2).epsilon(1e-12));
}

TEST_CASE("channels that tensor cores cannot load slow a product down") {
  Efficiency e;
  e.unaligned = 0.25;
  const auto share = [&](std::int64_t in, std::int64_t out, Precision precision, std::int64_t groups = 1) {
    Work w = convolution(1e9, 1);
    w.in_channels = in;
    w.out_channels = out;
    w.groups = groups;
    return compute_efficiency(w, 2, precision, e);
  };
  CHECK(share(64, 64, Precision::fp16) == 1);
  CHECK(share(3, 64, Precision::fp16) == 0.25);
  CHECK(share(64, 100, Precision::bf16) == 0.25);  // 100 is no multiple of 8,
  CHECK(share(64, 100, Precision::tf32) == 1);     // but of 4
  CHECK(share(3, 64, Precision::tf32) == 0.25);
  CHECK(share(3, 64, Precision::fp32) == 1);
  CHECK(share(64, 100, Precision::fp16, 2) == 1);  // a class of its own
}

TEST_CASE("convolutions are classed by their geometry") {
  Work w = convolution(1, 1);
  CHECK(kernel_class(w) == KernelClass::convolution_3x3);
  w.stride = 2;
  CHECK(kernel_class(w) == KernelClass::convolution_other);
  w.kernel_h = w.kernel_w = 1;
  CHECK(kernel_class(w) == KernelClass::convolution_1x1);
  w.stride = 1;
  w.kernel_w = 7;
  CHECK(kernel_class(w) == KernelClass::convolution_other);
  w.kernel_h = 7;
  CHECK(kernel_class(w) == KernelClass::convolution_5x5);
  w.groups = 32;
  CHECK(kernel_class(w) == KernelClass::convolution_grouped);
  w.kind = KernelKind::depthwise_convolution;
  CHECK(kernel_class(w) == KernelClass::convolution_depthwise);
}

TEST_CASE(
    "on tensor cores windows of 3x3x3 are as those of 3x3, and ordinary cores save multiplications of images "
    "alone") {
  const DeviceType gpu = load_device("h100-sxm5-80gb", {});
  Work volume = works::convolution(1e9, 0), image = volume;  // of as long dot products
  volume.kernel_d = 3;
  volume.kernel_h = 9;
  image.in_channels = 3 * volume.in_channels;
  const auto share = [&](const Work& work, Precision precision) {
    return compute_efficiency(work, 8, precision, gpu.efficiency[static_cast<std::size_t>(precision)],
                              Layout::nhwc);
  };
  for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
    CHECK(share(volume, precision) == approx(share(image, precision)).epsilon(1e-12));
  const auto flat = [](Work work) {
    work.kernel_d = 0;
    return work;
  };
  CHECK(share(volume, Precision::fp32) == share(flat(volume), Precision::fp32));
  CHECK(share(volume, Precision::fp16) > share(flat(volume), Precision::fp16));
  Work strided = volume;
  strided.stride = 2;
  CHECK(share(strided, Precision::fp16) == share(flat(strided), Precision::fp16));
  // What a layer's work says of its window.
  const TrainingGraph graph = build_training_graph(
      read_model(parse_yaml(
          "{name: v, input: [4, 8, 8, 8], layers: [{name: a, kind: conv3d, out_channels: 8, kernel: 3}]}",
          "v")),
      TrainingOptions{});
  CHECK(graph.operations.front().work.kernel_d == 3);
  CHECK(graph.operations.front().work.kernel_h == 9);
}

TEST_CASE("more images never take less time") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    const DeviceType d = random_device(random);
    const Work w = random_work(random);
    double before = 0;
    for (const double images : {0.5, 1.0, 2.0, 3.0, 16.0, 17.0, 256.0, 1e5}) {
      const double time = operation_time_s(w, images, Precision::fp32, d);
      REQUIRE(std::isfinite(time));
      REQUIRE(time > 0);
      // up to rounding: the time may be constant, where the fixed part is all there is
      REQUIRE(time >= before * (1 - 1e-12));
      before = time;
    }
  }
}

TEST_CASE("a faster device is never slower, and twice the rates halve the time") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    DeviceType d = random_device(random);
    d.launch_overhead_s = 0;
    const Work w = random_work(random);
    const double time = operation_time_s(w, 32, Precision::fp32, d);
    DeviceType faster = d;
    faster.peak_flops[Precision::fp32] *= 2;
    REQUIRE(operation_time_s(w, 32, Precision::fp32, faster) <= time);
    faster.memory_bandwidth_Bps *= 2;
    REQUIRE(operation_time_s(w, 32, Precision::fp32, faster) == approx(time / 2).epsilon(1e-12));
  }
}

TEST_CASE("the share of peak lies below its limit, and comes to it as the work grows") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    const DeviceType d = random_device(random);
    const Efficiency& e = d.efficiency[0];
    Work w = random_work(random);
    if (kernel_class(w) > KernelClass::matmul) continue;
    double limit = e.compute[static_cast<std::size_t>(kernel_class(w))];
    if (kernel_class(w) == KernelClass::convolution_3x3 && e.half_winograd > 0)
      limit = std::max(limit, e.compute[static_cast<std::size_t>(KernelClass::convolution_other)]);
    limit *= w.phase == Phase::data_gradient     ? e.data_gradient
             : w.phase == Phase::weight_gradient ? e.weight_gradient
                                                 : 1.0;
    const bool square = w.kernel_h == w.kernel_w && w.stride == 1 && w.groups <= 1;
    const KernelClass kernel = kernel_class(w);
    const bool is_3x3 = kernel == KernelClass::convolution_3x3,
               is_5x5 = kernel == KernelClass::convolution_5x5;
    limit = std::min(limit, square && is_3x3   ? 4.0
                            : square && is_5x5 ? 100.0 / 36
                                               : 1.0);  // the algorithms' savings
    const double share = compute_efficiency(w, 4, Precision::fp32, e);
    REQUIRE(share > 0);
    REQUIRE(share <= limit);
    REQUIRE(compute_efficiency(w, 8, Precision::fp32, e) >= share);
    w.in_channels = w.out_channels = 100'000'000;
    w.out_h = w.out_w = 28;  // whole tiles of Winograd's algorithm
    REQUIRE(compute_efficiency(w, 1e9, Precision::fp32, e) == approx(limit).epsilon(1e-3));
  }
}

TEST_CASE("more output channels never take less time") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    const DeviceType d = random_device(random);
    Work w = convolution(0, 0);
    double before = 0;
    for (const std::int64_t channels : {1, 2, 31, 32, 33, 64, 512, 4096}) {
      w.out_channels = channels;
      w.flops_per_image = 2.0 * 28 * 28 * 64 * 9 * static_cast<double>(channels);
      const double time = operation_time_s(w, 4, Precision::fp32, d);
      REQUIRE(time > before);
      before = time;
    }
  }
}
