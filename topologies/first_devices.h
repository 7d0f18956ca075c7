// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "topologies/machine.h"

namespace convoy::inline topologies {

/// The part of `machine` that its first `count` devices use: they keep their numbers, hosts without any of
/// them go (dedicated servers stay), links and ways are those of the whole machine.
/// @param count 1 to the machine's number of devices
Machine first_devices(const Machine& machine, std::uint32_t count);

}  // namespace convoy::topologies
