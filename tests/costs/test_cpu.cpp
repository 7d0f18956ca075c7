// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/costs/cost_model.h"
#include "tests/costs/works.h"
#include "tests/support/approx.h"

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
  exact.cpu = true;
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
    if (!device.cpu) continue;
    CAPTURE(name);
    for (std::size_t c = 0; c <= static_cast<std::size_t>(KernelClass::matmul); ++c) {
      CAPTURE(kernel_class_names[c]);
      CHECK(device.efficiency[0].compute[c] <= 1);
    }
  }
}
