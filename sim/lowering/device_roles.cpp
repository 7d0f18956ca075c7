// SPDX-License-Identifier: MIT
#include "sim/lowering/device_roles.h"

#include <map>
#include <utility>

#include "models/frozen.h"
#include "sim/lowering/grouped_launch.h"
#include "sim/lowering/held_normalization.h"

namespace convoy::inline lowering {

std::size_t DeviceRoles::add(const Role& program, AlikeDevices alike, const RoleName& name) {
  const std::size_t first = plan_.roles.size();
  std::map<std::uint32_t, std::vector<EndpointId>> by_type;
  for (const EndpointId device : alike.devices) by_type[machine_.devices[device].type].push_back(device);
  StateBytes bytes = alike.state_bytes;
  bytes[static_cast<std::size_t>(MemoryClass::weights)] +=
      frozen_bytes(alike.frozen_elements, graph_.options);
  for (auto& [number, members] : by_type) {
    const DeviceType& type = machine_.device_types[number];
    Role role = program;
    if (alike.sums) {
      // An endless run's steps are told by the numbers of tasks, which holding changes.
      if (!plan_.endless()) hold_normalizations(plan_, role, *alike.sums, graph_, machine_, cost_, type);
      add_grouped_launches(role, *alike.sums, graph_, machine_, cost_, type);
    }
    role.name = name(machine_.devices[members.front()], type, by_type.size());
    role.members = std::move(members);
    for (std::size_t c = 0; c < memory_class_count; ++c) role.resident_bytes[c] += bytes[c];
    role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] += type.reserved_bytes;
    plan_.roles.push_back(std::move(role));
  }
  return first;
}

}  // namespace convoy::lowering
