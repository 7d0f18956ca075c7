// SPDX-License-Identifier: MIT
#include "topologies/fabric.h"

#include <fmt/format.h>

#include "topologies/fabrics/switch.h"

namespace convoy {

const std::vector<FabricEntry>& fabric_registry() {
  static const std::vector<FabricEntry> registry = {
      {"switch", "one non-blocking switch", "bandwidth, latency, nics, efficiency, message_overhead",
       read_switch_fabric},
  };
  return registry;
}

NicSpec read_nic(YamlMap& map) {
  NicSpec nic;
  nic.efficiency = map.quantity_or("efficiency", Dimension::fraction, 1.0, true);
  if (nic.efficiency > 1) map.fail("efficiency", "must be at most 100%");
  nic.bandwidth_Bps = nic.efficiency * map.quantity("bandwidth", Dimension::bandwidth, true);
  nic.latency_s = map.quantity("latency", Dimension::time);
  nic.message_overhead_s = map.quantity_or("message_overhead", Dimension::time, 0);
  nic.count = static_cast<std::uint32_t>(map.integer_or("nics", 1, 1, 64));
  return nic;
}

std::string nic_text(const NicSpec& nic) {
  std::string text = nic.count == 1 ? "" : fmt::format("{} x ", nic.count);
  return text + fmt::format("{}, {}", format_bandwidth(nic.bandwidth_Bps), format_time(nic.latency_s));
}

std::shared_ptr<const Fabric> read_fabric(const YamlNode& node, const std::string& path) {
  YamlMap map(node, path);
  std::vector<std::string> kinds;
  for (const FabricEntry& entry : fabric_registry()) kinds.emplace_back(entry.kind);
  const std::size_t kind = map.choice("kind", kinds);
  std::shared_ptr<const Fabric> fabric = fabric_registry()[kind].read(map);
  map.finish();
  return fabric;
}

NicLinks::NicLinks(std::span<const FabricHost> hosts, LinkTable& links) {
  first_.reserve(hosts.size());
  for (const FabricHost& host : hosts) {
    first_.push_back(static_cast<LinkId>(links.links().size()));
    const double half_latency_s = (host.nic.latency_s + host.nic.message_overhead_s) / 2;
    for (std::uint32_t n = 0; n < host.nic.count; ++n)
      links.add_cable(host.name + (host.nic.count == 1 ? ".nic" : ".nic" + std::to_string(n)),
                      host.nic.bandwidth_Bps, half_latency_s);
  }
}

}  // namespace convoy
