// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/device.h"

namespace convoy::inline topologies {

/// Clock at which a device draws `limit_w` at full arithmetic load, over its full clock, at most 1. Power
/// above idle goes with the cube of the clock (with the square of the voltage, which rises with the clock)
/// down to the clock below which the voltage cannot fall, and in proportion to it there.
double clock_share(const DeviceType& device, double limit_w);

/// The device under a power limit (nvidia-smi -pl): its arithmetic peaks fall with the clock, its memory
/// keeps its own. A limit of at least peak_power_w changes nothing. @pre limit_w > device.idle_power_w
void limit_power(DeviceType& device, double limit_w);

}  // namespace convoy::topologies
