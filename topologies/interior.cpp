// SPDX-License-Identifier: MIT
#include "topologies/interior.h"

#include "sim/base/key_kinds.h"
#include "sim/base/key_parts.h"
#include "topologies/cluster_keys.h"
#include "topologies/interiors/custom.h"
#include "topologies/interiors/nccl_xml.h"
#include "topologies/interiors/none.h"
#include "topologies/interiors/nvidia_smi.h"
#include "topologies/interiors/nvlink.h"
#include "topologies/interiors/nvswitch.h"
#include "topologies/interiors/pcie.h"

namespace convoy::inline topologies {

const std::vector<InteriorEntry>& interior_registry() {
  static const std::vector<InteriorEntry> registry = {
      {"none", "devices of a server exchange data in no time", {}, read_no_interior},
      {"pcie", "lanes of each device to the root, or to PCIe switches below one or more sockets", pcie_keys(),
       read_pcie_interior},
      {"nvlink", "links between pairs of devices; pairs without one go over PCIe", nvlink_keys(),
       read_nvlink_interior},
      {"nvswitch", "a port of each device to a switch that joins any two", nvswitch_keys(),
       read_nvswitch_interior},
      {"custom", "cables between gpu0, gpu1, ..., host and switches as listed; the way of least latency",
       custom_interior_keys(), read_custom_interior},
      {"nvidia_smi", "what `nvidia-smi topo -m` printed: PCIe switches, sockets, NVLinks, NICs",
       nvidia_smi_keys(), read_nvidia_smi_interior},
      {"nccl_xml", "what NCCL wrote (NCCL_TOPO_DUMP_FILE), with the PCIe rates", nccl_keys(),
       read_nccl_interior},
  };
  return registry;
}

std::shared_ptr<const Interior> read_interior(const YamlNode& node, const std::string& path,
                                              std::uint32_t devices) {
  YamlMap map(node, path);
  std::vector<std::string> kinds;
  for (const InteriorEntry& entry : interior_registry()) kinds.emplace_back(entry.kind);
  const InteriorEntry& entry = interior_registry()[map.choice("kind", kinds)];
  refuse_unknown_keys(map, names_of(entry.keys));
  std::shared_ptr<const Interior> interior = entry.read(map, devices);
  map.finish();
  return interior;
}

KeySection interconnect_keys() {
  return section_of_registry("interconnect", "what joins the devices of a server", interior_registry());
}

}  // namespace convoy::topologies
