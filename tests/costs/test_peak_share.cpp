// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "models/model.h"
#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/costs/peak_share.h"
#include "tests/costs/random_works.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::works;

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
