// SPDX-License-Identifier: MIT
#include "topologies/power_limit.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline topologies {
namespace {

/// Of the full clock; below it the voltage is at its least. Fitted to the power-limit sweeps of the V100 in
/// results/published/energy.csv (batches of 128 to 360), tested on the Quadro RTX 6000's.
constexpr double least_voltage_clock = 0.815;

}  // namespace

double clock_share(const DeviceType& device, double limit_w) {
  const double range_w = device.peak_power_w - device.idle_power_w;
  if (range_w <= 0 || limit_w >= device.peak_power_w) return 1;
  const double share = std::max(0.0, limit_w - device.idle_power_w) / range_w;
  const double cubed = std::cbrt(share);
  return cubed >= least_voltage_clock ? cubed : share / (least_voltage_clock * least_voltage_clock);
}

void limit_power(DeviceType& device, double limit_w) {
  const double clock = clock_share(device, limit_w);
  for (auto& [precision, flops] : device.peak_flops) flops *= clock;
  device.clock_hz *= clock;
  device.peak_power_w = std::min(device.peak_power_w, limit_w);
}

}  // namespace convoy::topologies
