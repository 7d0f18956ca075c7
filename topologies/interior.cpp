// SPDX-License-Identifier: MIT
#include "topologies/interior.h"

#include "topologies/interiors/custom.h"
#include "topologies/interiors/nccl_xml.h"
#include "topologies/interiors/none.h"
#include "topologies/interiors/nvidia_smi.h"
#include "topologies/interiors/nvlink.h"
#include "topologies/interiors/nvswitch.h"
#include "topologies/interiors/pcie.h"

namespace convoy {

const std::vector<InteriorEntry>& interior_registry() {
  static const std::vector<InteriorEntry> registry = {
      {"none", "devices of a server exchange data in no time", "", read_no_interior},
      {"pcie", "lanes of each device to the root, or to PCIe switches below one or more sockets",
       "bandwidth, latency, efficiency, switches, uplink, sockets, socket_link, hop_latency",
       read_pcie_interior},
      {"nvlink", "links between pairs of devices; pairs without one go over PCIe",
       "bandwidth (of one link), latency, efficiency, pairs: [[0, 1, links]] or matrix, pcie",
       read_nvlink_interior},
      {"nvswitch", "a port of each device to a switch that joins any two",
       "bandwidth, latency, efficiency, pcie", read_nvswitch_interior},
      {"custom", "cables between gpu0, gpu1, ..., host and switches as listed; the way of least latency",
       "switches, links: [{from, to, bandwidth, latency}], nics_at, efficiency", read_custom_interior},
      {"nvidia_smi", "what `nvidia-smi topo -m` printed: PCIe switches, sockets, NVLinks, NICs",
       "file, bandwidth (PCIe), latency, uplink, hop_latency, socket_link, nvlink (of one link), "
       "nvlink_latency, "
       "efficiency",
       read_nvidia_smi_interior},
      {"nccl_xml", "what NCCL wrote (NCCL_TOPO_DUMP_FILE), with the PCIe rates",
       "file, latency, hop_latency, socket_link, nvlink (of one link; by compute capability), "
       "nvlink_latency, "
       "efficiency",
       read_nccl_interior},
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
