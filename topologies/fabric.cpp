// SPDX-License-Identifier: MIT
#include "topologies/fabric.h"

#include <fmt/format.h>

#include "sim/base/key_kinds.h"
#include "sim/base/key_parts.h"
#include "topologies/cable_list.h"
#include "topologies/cluster_keys.h"
#include "topologies/fabrics/astra_sim.h"
#include "topologies/fabrics/custom.h"
#include "topologies/fabrics/dragonfly.h"
#include "topologies/fabrics/fat_tree.h"
#include "topologies/fabrics/full_mesh.h"
#include "topologies/fabrics/infragraph.h"
#include "topologies/fabrics/rail.h"
#include "topologies/fabrics/ring.h"
#include "topologies/fabrics/shared.h"
#include "topologies/fabrics/simgrid_platform.h"
#include "topologies/fabrics/sites.h"
#include "topologies/fabrics/switch.h"
#include "topologies/fabrics/torus.h"

namespace convoy::inline topologies {

const std::vector<FabricEntry>& fabric_registry() {
  static const std::vector<FabricEntry> registry = {
      {"switch", "one non-blocking switch", texts_of(nic_keys()), read_switch_fabric},
      {"shared", "one medium for everybody and both directions, such as Wi-Fi", texts_of(cable_keys()),
       read_shared_fabric},
      {"ring", "hosts in a ring of cables; messages go the shorter way", texts_of(cable_keys()),
       read_ring_fabric},
      {"full_mesh", "a cable between every two hosts", texts_of(cable_keys()), read_full_mesh_fabric},
      {"fat_tree", "leaf and spine switches, or pods of them under core switches; d-mod-k routing",
       fat_tree_keys(), read_fat_tree_fabric},
      {"torus", "hosts in a grid whose rows are rings; dimension-ordered routing", torus_keys(),
       read_torus_fabric},
      {"dragonfly", "groups of fully meshed routers, a cable between every two groups; minimal routing",
       dragonfly_keys(), read_dragonfly_fabric},
      {"custom", "switches and cables as listed; the way of least latency", custom_fabric_keys(),
       read_custom_fabric},
      {"rail", "NIC r of every host on switch r of its group, spines above; d-mod-k routing", rail_keys(),
       read_rail_fabric},
      {"sites", "hosts in several places, each with a fabric of its own, and a WAN between every two",
       sites_keys(), read_sites_fabric},
      {"simgrid", "the network of a SimGrid platform file, whose hosts are the cluster's in its order",
       simgrid_keys(), read_simgrid_fabric},
      {"astra_sim", "the network file of ASTRA-sim's analytical backend, whose NPUs are hosts or in hosts",
       astra_sim_keys(), read_astra_sim_fabric},
      {"infragraph", "the infrastructure of an InfraGraph file, whose instances with xpus are the hosts",
       infragraph_keys(), read_infragraph_fabric},
  };
  return registry;
}

Keys<NicSpec> payload_keys() {
  return {custom_key<NicSpec>("efficiency", "100%", forms::share(true),
                              "of the nominal bandwidth that payload can use",
                              [](YamlMap& map, NicSpec& nic) { nic.efficiency = read_payload_share(map); }),
          optional_quantity_key<NicSpec>("message_overhead", "0s", Dimension::time, false,
                                         "added to the latency of each message, whatever its way",
                                         &NicSpec::message_overhead_s)};
}

Keys<NicSpec> protocol_keys() {
  const auto costs = [](const NicSpec& nic) { return nic.protocol && *nic.protocol != Protocol::ideal; };
  Key<NicSpec> protocol = custom_key<NicSpec>(
      "protocol", "not told", forms::name(protocol_names),
      "what the hosts speak; not told: ideal where every device has efficiency 1, else tcp is assumed",
      [](YamlMap& map, NicSpec& nic) {
        if (map.find("protocol"))
          nic.protocol = static_cast<Protocol>(map.choice("protocol", protocol_names));
      });
  return {
      std::move(protocol),
      optional_integer_key<NicSpec>("streams", "the library's", 1, 1024, "connections of a message",
                                    &NicSpec::streams)
          .only("protocol: tcp or rdma", costs),
      optional_quantity_key<NicSpec>("stream_bandwidth", "no limit", Dimension::bandwidth, true,
                                     "that the network gives one connection", &NicSpec::stream_bandwidth_Bps)
          .only("protocol: tcp or rdma", costs),
      optional_quantity_key<NicSpec>(
          "handshake", "0s", Dimension::time, false,
          "that a message of NCCL of more than 8 KiB waits for its receiver's buffer", &NicSpec::handshake_s)
          .only("protocol: tcp or rdma", costs),
      optional_quantity_key<NicSpec>("tree_chunk", "NCCL's", Dimension::bytes, true,
                                     "largest piece that NCCL's trees of switches' sums pass on",
                                     &NicSpec::tree_chunk_bytes)
          .only("protocol: tcp or rdma", costs),
      flag_key<NicSpec>("simple_only", "NCCL has its Simple protocol alone between hosts",
                        &NicSpec::simple_only)
          .only("protocol: tcp or rdma", costs)};
}

Keys<NicSpec> cable_keys() {
  Keys<NicSpec> keys = payload_keys();
  keys.push_back(custom_key<NicSpec>("bandwidth", "", forms::quantity(Dimension::bandwidth, true),
                                     "of a NIC or cable in one direction",
                                     [](YamlMap& map, NicSpec& nic) {
                                       nic.bandwidth_Bps =
                                           nic.efficiency *
                                           map.quantity("bandwidth", Dimension::bandwidth, true);
                                     })
                     .told_required());
  keys.push_back(optional_quantity_key<NicSpec>("latency", "", Dimension::time, false,
                                                "one way between two hosts of one switch, or along a cable",
                                                &NicSpec::latency_s)
                     .required());
  append_keys(keys, protocol_keys());
  return keys;
}

Keys<NicSpec> nic_keys() {
  Keys<NicSpec> keys = cable_keys();
  keys.push_back(optional_quantity_key<NicSpec>(
      "burst", "none", Dimension::bandwidth, true,
      "what its provider gives a NIC for a while, more than the sustained bandwidth; told, not simulated",
      &NicSpec::burst_Bps));
  keys.push_back(
      integer_key<NicSpec>("nics", 1, 32, "that each host has, each of that bandwidth", &NicSpec::count));
  return keys;
}

NicSpec read_cable(YamlMap& map) {
  NicSpec nic;
  static const Keys<NicSpec> keys = cable_keys();
  read_keys(keys, map, nic);
  return nic;
}

NicSpec read_nic(YamlMap& map) {
  NicSpec nic;
  static const Keys<NicSpec> keys = nic_keys();
  read_keys(keys, map, nic);
  return nic;
}

KeySection fabric_keys() {
  return section_of_registry("fabric", "what joins the hosts of a cluster", fabric_registry());
}

void Fabric::fail(const std::string& message) const { throw InputError(pos_, path_ + ": " + message); }

std::string nic_text(const NicSpec& nic) {
  std::string text = nic.count == 1 ? "" : fmt::format("{} x ", nic.count);
  text += fmt::format("{}, {}", format_bandwidth(nic.bandwidth_Bps), format_time(nic.latency_s));
  if (nic.protocol && *nic.protocol != Protocol::ideal)
    text += ", " + protocol_names[static_cast<std::size_t>(*nic.protocol)];
  return text;
}

std::shared_ptr<const Fabric> read_fabric(const YamlNode& node, const std::string& path) {
  YamlMap map(node, path);
  std::vector<std::string> kinds;
  for (const FabricEntry& entry : fabric_registry()) kinds.emplace_back(entry.kind);
  const FabricEntry& entry = fabric_registry()[map.choice("kind", kinds)];
  refuse_unknown_keys(map, names_of(entry.keys));
  std::shared_ptr<const Fabric> fabric = entry.read(map);
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
                      host.nic.bandwidth_Bps, half_latency_s, LinkKind::nic);
    links.give_to(host.index, first_.back());
  }
}

StackLinks::StackLinks(std::span<const FabricHost> hosts, std::span<const double> capacity_Bps,
                       double message_overhead_s, LinkTable& links)
    : there_(message_overhead_s > 0), first_(static_cast<LinkId>(links.links().size())) {
  if (!there_) return;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    links.give_to(hosts[h].index,
                  links.add_cable(hosts[h].name + ".stack", capacity_Bps[h], message_overhead_s / 2));
}

}  // namespace convoy::topologies
