// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <random>

#include "tests/costs/works.h"

namespace convoy::works {

inline Work random_work(std::mt19937& random) {
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

inline DeviceType random_device(std::mt19937& random) {
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

}  // namespace convoy::works
