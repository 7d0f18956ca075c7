// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"

namespace convoy::works {

/// 10 TFLOP/s, 500 GB/s, no overhead: exactly the roofline.
inline DeviceType ideal() {
  DeviceType d;
  d.name = "ideal";
  d.peak_flops = {{Precision::fp32, 10e12}, {Precision::fp16, 40e12}};
  d.memory_bytes = 16e9;
  d.memory_bandwidth_Bps = 500e9;
  return d;
}

inline Work convolution(double flops, double bytes) {
  Work w;
  w.kind = KernelKind::convolution;
  w.flops_per_image = flops;
  w.bytes_per_image = bytes;
  w.in_channels = 64;
  w.out_channels = 128;
  w.kernel_h = w.kernel_w = 3;
  w.stride = w.groups = 1;
  w.out_h = w.out_w = 28;
  return w;
}

}  // namespace convoy::works
