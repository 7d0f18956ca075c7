// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline topologies {

/// The part of `machine` that its first `count` devices use: they keep their numbers, hosts without any of
/// them go (dedicated servers stay), links and ways are those of the whole machine.
/// @param count 1 to the machine's number of devices
Machine first_devices(const Machine& machine, std::uint32_t count);

/// The same of any of its devices: endpoint i of the part is the i-th of `chosen`, and then come the memories of
/// the hosts that stay, in their order.
/// @param chosen devices in ascending order, at least one
Machine chosen_devices(const Machine& machine, const std::vector<EndpointId>& chosen);

/// By endpoint of chosen_devices(machine, chosen), the endpoint of `machine` that it is.
std::vector<EndpointId> endpoints_of_chosen(const Machine& machine, const std::vector<EndpointId>& chosen);

}  // namespace convoy::topologies
