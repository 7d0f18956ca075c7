// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::inline topologies {

/// What a link is made of. What depends on it looks here: names of links are for people only.
enum class LinkKind : std::uint8_t {
  pcie,     ///< PCIe lanes, uplinks of PCIe switches, and what joins a host's sockets
  nvlink,   ///< between two devices, or from a device to an NVSwitch
  memory,   ///< copies through a host's memory
  nic,      ///< of a host
  network,  ///< of a fabric, behind the hosts' NICs or in their place
};
/// Those that a listed cable of a server may be, in the order above.
inline const std::vector<std::string> cable_kind_names{"pcie", "nvlink"};

}  // namespace convoy::topologies
