// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "models/layer_costs.h"
#include "sim/costs/cost_model.h"
#include "tests/costs/works.h"
#include "tests/support/approx.h"
#include "tests/support/cpu_kind.h"

using namespace convoy;

namespace {

Software software_with_one_thread(double factor) {
  Software software(Precision::fp32);
  software.costs.one_thread = factor;
  return software;
}

/// 64 to 64 channels, 3x3, result 56 x 56.
Work unfolded_convolution(Phase phase) {
  Work work;
  work.kind = KernelKind::convolution;
  work.phase = phase;
  work.in_channels = work.out_channels = 64;
  work.kernel_h = work.kernel_w = 3;
  work.stride = work.groups = 1;
  work.out_h = work.out_w = 56;
  work.flops_per_image = 2.0 * 56 * 56 * 64 * 64 * 9;
  work.bytes_per_image = 4.0 * 2 * 64 * 56 * 56;
  return work;
}

}  // namespace

TEST_CASE(
    "frameworks that leave a CPU's copies to one thread take a core's share of the bandwidth for them") {
  DeviceType cpu = load_device("xeon-e5-2630-v3-dual", {});
  const double core_Bps = cpu.memory_bandwidth_Bps / cpu.sms;
  const auto share = [&](KernelClass kernel) {
    return cpu.efficiency[0].bandwidth[static_cast<std::size_t>(kernel)];
  };
  const double images = 16, factor = 2.5;
  const Software alone = software_with_one_thread(factor), all = software_with_one_thread(0);
  const auto longer_s = [&](const Work& work) {
    return operation_time_s(work, images, alone, cpu) - operation_time_s(work, images, all, cpu);
  };
  // The matrix of an image has a row of 64 x 9 values for each of 56 x 56 pixels; 4 bytes each.
  const double matrix_bytes = 4.0 * 64 * 9 * 56 * 56 * images;
  const double pass_s = factor * matrix_bytes / (core_Bps * share(KernelClass::elementwise));
  CHECK(longer_s(unfolded_convolution(Phase::forward)) == approx(2 * pass_s).epsilon(1e-9));
  CHECK(longer_s(unfolded_convolution(Phase::data_gradient)) == approx(3 * pass_s).epsilon(1e-9));
  CHECK(longer_s(unfolded_convolution(Phase::weight_gradient)) == approx(0).epsilon(1e-12));
  // What is no product takes one core instead of all of them.
  Work normalization;
  normalization.kind = KernelKind::normalization;
  normalization.bytes_per_image = 1e6;
  CHECK(operation_time_s(normalization, images, alone, cpu) - cpu.launch_overhead_s ==
        approx(factor * cpu.sms * (operation_time_s(normalization, images, all, cpu) - cpu.launch_overhead_s))
            .epsilon(1e-9));
}

TEST_CASE("devices with given efficiencies and GPUs know nothing of a CPU's single thread") {
  DeviceType exact;
  exact.kind = cpu_kind();
  exact.sms = 16;
  exact.peak_flops = {{Precision::fp32, 1e12}};
  exact.memory_bandwidth_Bps = 1e11;
  const DeviceType gpu = load_device("v100-sxm2-16gb", {});
  for (const DeviceType& device : {exact, gpu}) {
    const Work work = unfolded_convolution(Phase::forward);
    CHECK(operation_time_s(work, 8, software_with_one_thread(3), device) ==
          operation_time_s(work, 8, software_with_one_thread(0), device));
  }
}

TEST_CASE("CPUs compute convolutions as products: never beyond their peak") {
  for (const std::string& name : device_names()) {
    const DeviceType device = load_device(name, {});
    if (!device.kind->in_process) continue;
    CAPTURE(name);
    for (std::size_t c = 0; c <= static_cast<std::size_t>(KernelClass::matmul); ++c) {
      CAPTURE(kernel_class_names[c]);
      CHECK(device.efficiency[0].compute[c] <= 1);
    }
  }
}

TEST_CASE("PyTorch's convolutions on a CPU put filters, inputs and outputs in oneDNN's order and back") {
  DeviceType cpu = load_device("epyc-7763", {});
  Efficiency& e = cpu.efficiency[0];
  e.filter_order = 0.25;
  e.first_touch = 0.125;
  e.transpose_passes = 1.5;
  TrainingOptions options;
  const auto software = [&](Framework framework, Layout layout) {
    options.framework = framework;
    options.layout = layout;
    return Software(options);
  };
  const double images = 3, Bps = cpu.memory_bandwidth_Bps,
               copies_Bps = Bps * e.bandwidth[static_cast<std::size_t>(KernelClass::elementwise)];
  for (const double groups : {1.0, 8.0}) {
    const auto longer_s = [&](Phase phase, Framework framework, Layout layout) {
      Work work = unfolded_convolution(phase);
      work.groups = static_cast<std::int64_t>(groups);
      Software plain = software(framework, layout), ordered = plain;
      ordered.costs.plain_tensors = false;
      return operation_time_s(work, images, plain, cpu) - operation_time_s(work, images, ordered, cpu);
    };
    const double filter_bytes = 4.0 * 64 * 64 * 9 / groups;
    const double filter_s = 2 * filter_bytes / (Bps * 0.25), new_s = 2 * filter_bytes / (Bps * 0.125);
    const double activations_s = 1.5 * images * 4.0 * 2 * 64 * 56 * 56 / copies_Bps;
    for (const Framework framework : {Framework::pytorch, Framework::pytorch1}) {
      CHECK(longer_s(Phase::forward, framework, Layout::nchw) ==
            approx(filter_s + activations_s).epsilon(1e-9));
      CHECK(longer_s(Phase::data_gradient, framework, Layout::nchw) ==
            approx(filter_s + activations_s).epsilon(1e-9));
      CHECK(longer_s(Phase::weight_gradient, framework, Layout::nchw) ==
            approx(filter_s + new_s + activations_s).epsilon(1e-9));
      CHECK(longer_s(Phase::forward, framework, Layout::nhwc) == approx(filter_s).epsilon(1e-9));
    }
    for (const Framework framework : {Framework::tensorflow, Framework::mxnet, Framework::torch7})
      CHECK(longer_s(Phase::weight_gradient, framework, Layout::nchw) == 0);
  }
}

TEST_CASE("PyTorch's pooling on a CPU goes through its windows value by value, but with channels last") {
  DeviceType cpu = load_device("epyc-7763", {});
  cpu.efficiency[0].pooling_windows = 0.002;
  Work pooling;
  pooling.kind = KernelKind::pooling;
  pooling.flops_per_image = 9 * 64 * 28 * 28;
  pooling.bytes_per_image = 4.0 * 64 * (56 * 56 + 28 * 28);
  TrainingOptions options;
  options.framework = Framework::pytorch;
  const double images = 5;
  const auto time_s = [&](Layout layout) {
    options.layout = layout;
    return operation_time_s(pooling, images, Software(options), cpu) - cpu.launch_overhead_s;
  };
  const double windows_s = images * pooling.flops_per_image / (cpu.peak_flops.at(Precision::fp32) * 0.002);
  CHECK(time_s(Layout::nchw) == approx(windows_s).epsilon(1e-9));
  CHECK(time_s(Layout::nhwc) < windows_s / 2);
  // The mean of a whole channel is a sum: as quick in either layout.
  pooling.is_whole_mean = true;
  CHECK(time_s(Layout::nchw) == time_s(Layout::nhwc));
}

TEST_CASE("exponentials take a CPU's time beside moving values, and nothing on GPUs and exact devices") {
  const Model model =
      read_model(parse_yaml("{name: own, input: [64, 32, 32], layers: [{name: a, kind: hardswish}, "
                            "{name: b, kind: silu}, {name: c, kind: adaptive_avg_pool}]}",
                            "m.yaml"));
  TrainingOptions options;
  options.framework = Framework::pytorch;
  const double images = 8, values = 64 * 32 * 32;
  const auto longer_s = [&](const DeviceType& device, Phase phase) {
    const auto time_s = [&](std::size_t layer) {
      const LayerCosts costs = layer_costs(model, layer);
      const KernelCost& cost = phase == Phase::forward ? *costs.forward : *costs.data_gradient;
      return operation_time_s(layer_work(model, layer, costs.kernel, cost, phase, Precision::fp32), images,
                              Software(options), device);
    };
    return time_s(1) - time_s(0);  // both do 5 FLOPs a value on as many bytes
  };
  const DeviceType cpu = load_device("epyc-7763", {});
  // 65 and 58 FLOPs of the peak
  CHECK(longer_s(cpu, Phase::forward) ==
        approx(65 * images * values / cpu.peak_flops.at(Precision::fp32)).epsilon(1e-6));
  CHECK(longer_s(cpu, Phase::data_gradient) ==
        approx(58 * images * values / cpu.peak_flops.at(Precision::fp32)).epsilon(1e-6));
  DeviceType exact = works::ideal();
  exact.kind = cpu_kind();
  for (const DeviceType& device : {exact, load_device("v100-sxm2-16gb", {})})
    for (const Phase phase : {Phase::forward, Phase::data_gradient}) CHECK(longer_s(device, phase) == 0);
  const LayerCosts mean = layer_costs(model, 2);
  CHECK(layer_work(model, 2, mean.kernel, *mean.forward, Phase::forward, Precision::fp32).is_whole_mean);
}

TEST_CASE("on GPUs and devices with given efficiencies, PyTorch's tensors are in the order of the kernels") {
  DeviceType exact;
  exact.kind = cpu_kind();
  exact.peak_flops = {{Precision::fp32, 1e12}};
  exact.memory_bandwidth_Bps = 1e11;
  Software plain(Precision::fp32), ordered = plain;
  plain.costs.plain_tensors = true;
  for (const DeviceType& device : {exact, load_device("v100-sxm2-16gb", {})})
    for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient}) {
      const Work work = unfolded_convolution(phase);
      CHECK(operation_time_s(work, 8, plain, device) == operation_time_s(work, 8, ordered, device));
    }
}
