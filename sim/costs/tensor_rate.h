// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/device.h"

namespace convoy::inline costs {

/// Multiply-adds that a device's tensor cores finish in a clock, over those of other boards with such chips: half
/// on GeForce boards of Turing, Ampere and Ada, which add up products in FP32 at half the rate of the Titan RTX,
/// Quadro, RTX A and data centre boards (NVIDIA's white papers: Turing, 2018, and GA102, 2020, tables of both).
/// Told by the data sheet's peak a multiprocessor and clock. 1 on ordinary cores, on every other chip, and
/// where shares of peak are given and not those of a fit, so that they hold as they are.
inline double tensor_rate(const DeviceType& device, Precision precision) {
  const bool has_both =
      device.generation == "turing" || device.generation == "ampere" || device.generation == "ada";
  if (!has_both || precision == Precision::fp32 || device.evidence_spread == 0) return 1;
  if (device.clock_hz <= 0 || device.sms <= 0) return 1;
  // The chips for computing of these generations have twice as many as the full rate of those for graphics.
  const double full = precision == Precision::tf32 ? 256 : 512;
  constexpr double between_half_and_full = 0.75;
  const double a_clock = device.peak_flops.at(precision) / 2 / device.clock_hz / device.sms;
  return a_clock < between_half_and_full * full ? 0.5 : 1;
}

/// The share of its peak that a kernel reaches at a rate of tensor_rate(), if it reaches `share` at rate 1: what it
/// does beside its multiply-adds takes as long at either rate, so that 1 / result - 1 = rate (1 / share - 1).
inline double share_at_rate(double share, double rate) {
  return share < 1 ? share / (share + rate * (1 - share)) : share;
}

}  // namespace convoy::costs
