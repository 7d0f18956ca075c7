// SPDX-License-Identifier: MIT
#include "topologies/interior.h"

#include "topologies/interiors/none.h"
#include "topologies/interiors/pcie.h"

namespace convoy {

const std::vector<InteriorEntry>& interior_registry() {
  static const std::vector<InteriorEntry> registry = {
      {"none", "devices of a server exchange data in no time", "", read_no_interior},
      {"pcie", "PCIe lanes of each device to a root, or to PCIe switches below one or two sockets",
       "bandwidth, latency, efficiency, switches, uplink, sockets, socket_link", read_pcie_interior},
  };
  return registry;
}

std::shared_ptr<const Interior> read_interior(const YamlNode& node, const std::string& path,
                                              std::uint32_t devices) {
  YamlMap map(node, path);
  std::vector<std::string> kinds;
  for (const InteriorEntry& entry : interior_registry()) kinds.emplace_back(entry.kind);
  const std::size_t kind = map.choice("kind", kinds);
  std::shared_ptr<const Interior> interior = interior_registry()[kind].read(map, devices);
  map.finish();
  return interior;
}

}  // namespace convoy
