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
#include "tests/costs/random_works.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::works;

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

TEST_CASE("a framework's products, and these alone, have their factor in half precision on tensor cores") {
  Software software(Precision::fp16), plain(Precision::fp16);
  software.costs.half = 2;
  Work product = convolution(1e9, 1), sum = product;
  sum.kind = KernelKind::elementwise;
  for (const std::string generation : {"volta", "turing", "pascal"}) {
    CAPTURE(generation);
    DeviceType device = ideal();
    device.issue_factor = 1;
    device.generation = generation;
    device.peak_flops[Precision::fp16] = 8 * device.peak_flops.at(Precision::fp32);
    const double factor = device.has_tensor_cores() ? 2 : 1;
    CHECK((factor == 1) == (generation == "pascal"));
    CHECK(operation_time_s(product, 2, software, device) ==
          approx(factor * operation_time_s(product, 2, plain, device)));
    CHECK(operation_time_s(sum, 2, software, device) == operation_time_s(sum, 2, plain, device));
    // Where the cores without matrix units are faster than these kernels, they compute the product, at their own pace.
    device.peak_flops[Precision::fp16] = 1.5 * device.peak_flops.at(Precision::fp32);
    Software single(Precision::fp32);
    single.costs.half = 2;
    if (factor == 2)
      CHECK(operation_time_s(product, 2, software, device) <
            1.6 * operation_time_s(product, 2, plain, device));
    CHECK(operation_time_s(product, 2, single, device) == operation_time_s(product, 2, Software(), device));
  }
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
