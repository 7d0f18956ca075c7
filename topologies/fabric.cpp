// SPDX-License-Identifier: MIT
#include "topologies/fabric.h"

#include <fmt/format.h>

#include "sim/base/keys.h"
#include "topologies/cable_list.h"
#include "topologies/fabrics/custom.h"
#include "topologies/fabrics/dragonfly.h"
#include "topologies/fabrics/fat_tree.h"
#include "topologies/fabrics/full_mesh.h"
#include "topologies/fabrics/rail.h"
#include "topologies/fabrics/ring.h"
#include "topologies/fabrics/shared.h"
#include "topologies/fabrics/simgrid_platform.h"
#include "topologies/fabrics/sites.h"
#include "topologies/fabrics/switch.h"
#include "topologies/fabrics/torus.h"

namespace convoy {

const std::vector<FabricEntry>& fabric_registry() {
  static const std::vector<FabricEntry> registry = {
      {"switch", "one non-blocking switch",
       "bandwidth, latency, nics, efficiency, message_overhead, protocol, streams, stream_bandwidth",
       read_switch_fabric},
      {"shared", "one medium for everybody and both directions, such as Wi-Fi",
       "bandwidth, latency, efficiency, message_overhead, protocol, streams, stream_bandwidth",
       read_shared_fabric},
      {"ring", "hosts in a ring of cables; messages go the shorter way",
       "bandwidth, latency, efficiency, message_overhead, protocol, streams, stream_bandwidth",
       read_ring_fabric},
      {"full_mesh", "a cable between every two hosts",
       "bandwidth, latency, efficiency, message_overhead, protocol, streams, stream_bandwidth",
       read_full_mesh_fabric},
      {"fat_tree", "leaf and spine switches, or pods of them under core switches; d-mod-k routing",
       "bandwidth, latency, nics, efficiency, message_overhead, protocol, streams, stream_bandwidth, levels: "
       "2 | 3, radix or "
       "hosts_per_leaf, "
       "spines, "
       "leaves_per_pod, cores_per_spine, oversubscription, core_oversubscription, hop_latency",
       read_fat_tree_fabric},
      {"torus", "hosts in a grid whose rows are rings; dimension-ordered routing",
       "bandwidth, latency, efficiency, message_overhead, protocol, streams, stream_bandwidth, dims",
       read_torus_fabric},
      {"dragonfly", "groups of fully meshed routers, a cable between every two groups; minimal routing",
       "bandwidth, latency, nics, efficiency, message_overhead, protocol, streams, stream_bandwidth, groups, "
       "routers, hosts, "
       "local_bandwidth, "
       "local_latency, "
       "global_bandwidth, global_latency",
       read_dragonfly_fabric},
      {"custom", "switches and cables as listed; the way of least latency",
       "switches, links: [{from, to, bandwidth, latency}], hosts_forward, efficiency, message_overhead, "
       "protocol, streams, stream_bandwidth",
       read_custom_fabric},
      {"rail", "NIC r of every host on switch r of its group, spines above; d-mod-k routing",
       "bandwidth, latency, nics, efficiency, message_overhead, hosts_per_group, spines, oversubscription, "
       "hop_latency",
       read_rail_fabric},
      {"sites", "hosts in several places, each with a fabric of its own, and a WAN between every two",
       "sites: [{hosts, fabric}], wan: {bandwidth, latency, efficiency}", read_sites_fabric},
      {"simgrid", "the network of a SimGrid platform file, whose hosts are the cluster's in its order",
       "file, efficiency, message_overhead", read_simgrid_fabric},
  };
  return registry;
}

void read_protocol(YamlMap& map, NicSpec& nic) {
  nic.protocol = read_choice(map, "protocol", protocol_names, Protocol::ideal);
  for (const char* key : {"streams", "stream_bandwidth"})
    if (map.find(key) && nic.protocol == Protocol::ideal)
      map.fail(key, "has no meaning with protocol: ideal; use protocol: tcp or rdma");
  if (map.has("streams")) nic.streams = static_cast<std::uint32_t>(map.integer("streams", 1, 1024));
  nic.stream_bandwidth_Bps =
      map.quantity_or("stream_bandwidth", Dimension::bandwidth, nic.stream_bandwidth_Bps, true);
}

NicSpec read_cable(YamlMap& map) {
  NicSpec nic;
  nic.efficiency = read_payload_share(map);
  nic.bandwidth_Bps = nic.efficiency * map.quantity("bandwidth", Dimension::bandwidth, true);
  nic.latency_s = map.quantity("latency", Dimension::time);
  nic.message_overhead_s = map.quantity_or("message_overhead", Dimension::time, 0);
  read_protocol(map, nic);
  return nic;
}

NicSpec read_nic(YamlMap& map) {
  NicSpec nic = read_cable(map);
  nic.count = static_cast<std::uint32_t>(map.integer_or("nics", 1, 1, 32));
  return nic;
}

void Fabric::fail(const std::string& message) const { throw InputError(pos_, path_ + ": " + message); }

std::string nic_text(const NicSpec& nic) {
  std::string text = nic.count == 1 ? "" : fmt::format("{} x ", nic.count);
  text += fmt::format("{}, {}", format_bandwidth(nic.bandwidth_Bps), format_time(nic.latency_s));
  if (nic.protocol != Protocol::ideal) text += ", " + protocol_names[static_cast<std::size_t>(nic.protocol)];
  return text;
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

StackLinks::StackLinks(std::span<const FabricHost> hosts, std::span<const double> capacity_Bps,
                       double message_overhead_s, LinkTable& links)
    : there_(message_overhead_s > 0), first_(static_cast<LinkId>(links.links().size())) {
  if (!there_) return;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    links.add_cable(hosts[h].name + ".stack", capacity_Bps[h], message_overhead_s / 2);
}

}  // namespace convoy
