// SPDX-License-Identifier: MIT
#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "sim/base/names.h"
#include "topologies/catalog.h"
#include "topologies/host_names.h"
#include "topologies/power_limit.h"

namespace convoy {
namespace {

constexpr std::int64_t max_hosts = 2'000'000;
constexpr std::size_t max_entries = 10'000;  // each is compared with each, for double names

/// The servers and devices that a cluster may name: its own ones before the catalogue's.
class Inventory {
 public:
  explicit Inventory(YamlMap& cluster) {
    if (cluster.find("devices")) {
      YamlMap devices = cluster.map("devices");
      const OwnEntries own = own_entries(devices);
      for (const auto& [name, node] : own) {
        const CatalogueEntry entry = derive_entry(CatalogueKind::device, name, *node, own);
        DeviceType device = read_device(entry.node, name);
        device.framework_reserves = !entry.root.empty() && !entry.node.find("reserved");
        devices_.emplace(name, std::move(device));
      }
    }
    if (cluster.find("servers")) {
      YamlMap servers = cluster.map("servers");
      own_servers_ = own_entries(servers);
      for (const auto& [name, node] : own_servers_)
        servers_.emplace(name, read_own_server(name, *node, servers.path_of(name)));
    }
  }

  /// A server that is described where its name could stand: `{base: aws-p3.16xlarge, price: 10USD/h}`.
  ServerSpec read_own_server(const std::string& name, const YamlNode& node, const std::string& path) const {
    return read_catalogue_server(
        derive_entry(CatalogueKind::server, name, node, own_servers_), path, name,
        [this](const std::string& device, const SourcePos& pos) { return find_device(device, pos); });
  }

  ServerSpec find_server(const std::string& name, const SourcePos& pos) const {
    if (const auto own = servers_.find(name); own != servers_.end()) return own->second;
    suggest_own(servers_, "server", server_names(), name, pos);
    return load_server(name, pos);
  }

 private:
  static OwnEntries own_entries(YamlMap& map) {
    OwnEntries own;
    for (const std::string& name : map.keys()) own.emplace(name, &map.node(name));
    return own;
  }

  DeviceType find_device(const std::string& name, const SourcePos& pos) const {
    if (const auto own = devices_.find(name); own != devices_.end()) return own->second;
    suggest_own(devices_, "device", device_names(), name, pos);
    return load_device(name, pos);
  }

  /// The catalogue's reader would suggest names of the catalogue only; the experiment's own are nearer at
  /// hand.
  template <class Own>
  static void suggest_own(const Own& own, const char* what, const std::vector<std::string>& catalogue,
                          const std::string& name, const SourcePos& pos) {
    if (std::binary_search(catalogue.begin(), catalogue.end(), name)) return;
    std::vector<std::string> names;
    for (const auto& [key, value] : own) names.push_back(key);
    if (const std::string hint = suggestion(name, names); !hint.empty())
      throw InputError(pos, fmt::format("unknown {} '{}'{}", what, name, hint));
  }

  std::map<std::string, DeviceType> devices_;
  std::map<std::string, ServerSpec> servers_;
  OwnEntries own_servers_;
};

void check_group_name(const YamlMap& map, const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    map.fail("name", fmt::format("'{}' is not a name: letters, digits, - and _ are allowed", name));
  if (name == "ps" || is_server_host(name))  // several hosts of "ps" would be ps0, ps1, ...
    map.fail("name", fmt::format("'{}' is kept for dedicated parameter servers (ps0, ps1, ...)", name));
}

/// Whether hosts of two entries have a name in common; "a" with 12 hosts and "a1" both have a host a10.
std::optional<std::string> common_host(const NodeGroup& x, const NodeGroup& y) {
  const NodeGroup &shorter = x.name.size() <= y.name.size() ? x : y, &longer = &shorter == &x ? y : x;
  if (!longer.name.starts_with(shorter.name)) return std::nullopt;
  const std::string digits = longer.name.substr(shorter.name.size());
  if (digits.empty()) return shorter.name + "0";
  const std::optional<double> start = parse_number(digits + "0");
  const bool whole =
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!whole || !start || digits[0] == '0' || *start >= shorter.count) return std::nullopt;
  return longer.name + "0";
}

class ClusterReader {
 public:
  ClusterReader(const YamlNode& node) : map_(node, "cluster"), inventory_(map_) { cluster_.pos = node.pos; }

  ClusterSpec read() {
    cluster_.title = map_.text_or("title", "");
    read_sources(map_);
    read_speed_variation();
    if (map_.find("server"))
      read_one_server();
    else
      read_node_list();
    if (const YamlNode* fabric = map_.find("fabric"))
      cluster_.fabric = read_fabric(*fabric, map_.path_of("fabric"));
    read_devices_per_node();
    read_dedicated();
    read_power_limit();
    if (map_.find("step_jitter")) cluster_.step_jitter = read_step_jitter(map_);
    if (map_.find("communication")) {
      YamlMap communication = map_.map("communication");
      cluster_.collective_overhead_s = communication.quantity_or("overhead", Dimension::time, 0);
      communication.finish();
    }
    map_.finish();
    check_fabric();
    return std::move(cluster_);
  }

 private:
  void read_speed_variation() {
    if (!map_.find("speed_variation")) return;
    YamlMap variation = map_.map("speed_variation");
    spread_ = read_spread(variation, "spread", 0);
    cluster_.speed_seed = static_cast<std::uint64_t>(variation.integer_or("seed", 1, 0));
    variation.finish();
  }

  static double read_spread(YamlMap& map, std::string_view key, double fallback) {
    const double spread = map.quantity_or(key, Dimension::fraction, fallback);
    if (spread >= 1)
      map.fail(key, fmt::format("must be below 100%: a {} cannot be zero",
                                key == "nic_spread" ? "NIC's rate" : "device's speed"));
    return spread;
  }

  void read_one_server() {
    const YamlNode& server = map_.node("server");
    if (const YamlNode* nodes = map_.find("nodes"); nodes && nodes->kind == YamlNode::Kind::sequence)
      map_.fail("nodes",
                "expected a whole number beside `server`; a list of nodes names each entry's server itself");
    NodeGroup group;
    group.name = "n";
    group.count = static_cast<std::uint32_t>(map_.integer_or("nodes", 1, 1, max_hosts));
    group.server = add_server(server, map_.path_of("server"));
    group.speed_spread = spread_;
    group.nic_spread = read_spread(map_, "nic_spread", 0);
    cluster_.groups.push_back(group);
    cluster_.name =
        map_.text_or("name", fmt::format("{} x {}", group.count, cluster_.servers[group.server].host.server));
  }

  void read_node_list() {
    if (!map_.find("nodes"))
      map_.fail("needs `server` with `nodes: N`, or a list of `nodes`, or the name of a catalogue cluster");
    cluster_.name = map_.text_or("name", "cluster");
    std::int64_t hosts = 0;
    if (const YamlNode& list = map_.node("nodes"); list.items.size() > max_entries)
      map_.fail("nodes",
                fmt::format("{} entries; at most {} are allowed (an entry's `count` makes equal hosts)",
                            list.items.size(), max_entries));
    for (YamlMap& entry : map_.maps("nodes")) {
      NodeGroup group;
      group.name = entry.text_or("name", "n");
      check_group_name(entry, group.name);
      group.count = static_cast<std::uint32_t>(entry.integer_or("count", 1, 1, max_hosts));
      group.speed = entry.number_or("speed", 1.0, 1e-6, 1e6);
      group.speed_spread = read_spread(entry, "speed_spread", spread_);
      if (entry.find("nic_bandwidth"))
        group.nic_bandwidth_Bps = entry.quantity("nic_bandwidth", Dimension::bandwidth, true);
      group.nic_spread = read_spread(entry, "nic_spread", 0);
      group.server = add_server(entry.node("server"), entry.path_of("server"));
      entry.finish();
      for (const NodeGroup& other : cluster_.groups)
        if (const std::optional<std::string> host = common_host(other, group))
          entry.fail("name",
                     fmt::format("two entries of nodes make a host '{}': give them different names", *host));
      cluster_.groups.push_back(group);
      hosts += group.count;
    }
    if (hosts == 0) map_.fail("nodes", "a cluster needs at least one node");
    if (hosts > max_hosts)
      map_.fail("nodes", fmt::format("{} hosts; at most {} are allowed", hosts, max_hosts));
  }

  /// A server by name, or one that is described there: called by its `name`, else by its base's.
  std::uint32_t add_server(const YamlNode& server, const std::string& path) {
    const bool described = server.kind == YamlNode::Kind::mapping;
    const std::string name = described ? name_of_described(server) : read_text(server, path);
    for (std::uint32_t s = 0; s < cluster_.servers.size(); ++s)
      if (cluster_.servers[s].host.server == name) {
        if (described)
          throw InputError(
              server.pos,
              fmt::format("{}: there is a server '{}' already; give this one a `name`", path, name));
        return s;
      }
    if (described) {
      YamlNode node = server;
      std::erase_if(node.entries, [](const auto& entry) { return entry.first == "name"; });
      cluster_.servers.push_back(inventory_.read_own_server(name, node, path));
    } else {
      cluster_.servers.push_back(inventory_.find_server(name, server.pos));
    }
    return static_cast<std::uint32_t>(cluster_.servers.size() - 1);
  }

  static std::string name_of_described(const YamlNode& server) {
    if (const YamlNode* name = server.find("name")) return read_text(*name, "name");
    const YamlNode* base = server.find("base");
    return base ? read_text(*base, "base") + ", changed" : "server";
  }

  void read_devices_per_node() {
    if (!map_.find("devices_per_node")) return;
    cluster_.devices_per_node = static_cast<std::uint32_t>(map_.integer("devices_per_node", 1));
    for (const ServerSpec& server : cluster_.servers)
      if (server.device_count() < cluster_.devices_per_node)
        map_.fail("devices_per_node",
                  fmt::format("{} are asked for, but server '{}' has {}", cluster_.devices_per_node,
                              server.host.server, server.device_count()));
  }

  void read_dedicated() {
    if (!map_.find("dedicated")) return;
    YamlMap dedicated = map_.map("dedicated");
    DedicatedHosts& hosts = cluster_.dedicated;
    if (dedicated.find("server"))
      hosts.server = std::make_shared<ServerSpec>(
          inventory_.find_server(dedicated.text("server"), dedicated.pos("server")));
    if (dedicated.find("nic_bandwidth")) {
      hosts.nic_bandwidth_Bps = dedicated.quantity("nic_bandwidth", Dimension::bandwidth, true);
      if (cluster_.fabric && !cluster_.fabric->has_nics())
        dedicated.fail("nic_bandwidth", "this kind of fabric has no use for it");
    }
    if (dedicated.find("price")) hosts.price_usd_per_h = dedicated.quantity("price", Dimension::price);
    dedicated.finish();
  }

  void read_power_limit() {
    if (!map_.find("power_limit")) return;
    const double limit_w = map_.quantity("power_limit", Dimension::power, true);
    for (ServerSpec& server : cluster_.servers)
      for (auto& [type, count] : server.devices) {
        if (limit_w <= type.idle_power_w)
          map_.fail("power_limit",
                    fmt::format("must be above the idle power of '{}', {} W", type.name, type.idle_power_w));
        limit_power(type, limit_w);
      }
  }

  void check_fabric() const {
    if (cluster_.fabric) {
      for (const NodeGroup& group : cluster_.groups)
        if ((group.nic_bandwidth_Bps || group.nic_spread > 0) && !cluster_.fabric->has_nics())
          map_.fail("fabric",
                    fmt::format("node '{}' has a `{}`, which this kind of fabric has no use for", group.name,
                                group.nic_bandwidth_Bps ? "nic_bandwidth" : "nic_spread"));
      return;
    }
    if (cluster_.node_count() == 1) return;
    for (const ServerSpec& server : cluster_.servers) {
      if (!server.fabric)
        map_.fail(
            fmt::format("key 'fabric' is missing, and server '{}' names none of its own, such as "
                        "{{kind: switch, bandwidth: 10Gbps, latency: 25us}}",
                        server.host.server));
      if (cluster_.servers.size() > 1 && !server.fabric->mixes())
        map_.fail(fmt::format("key 'fabric' is missing: the servers' own fabrics ('{}': {}) cannot be mixed",
                              server.host.server, server.fabric->text()));
    }
  }

  YamlMap map_;
  Inventory inventory_;
  ClusterSpec cluster_;
  double spread_ = 0;
};

}  // namespace

std::uint32_t ClusterSpec::node_count() const {
  std::uint32_t count = 0;
  for (const NodeGroup& group : groups) count += group.count;
  return count;
}

std::uint32_t ClusterSpec::devices_of(const NodeGroup& group) const {
  return devices_per_node > 0 ? devices_per_node : servers[group.server].device_count();
}

std::uint32_t ClusterSpec::device_count() const {
  std::uint32_t count = 0;
  for (const NodeGroup& group : groups) count += group.count * devices_of(group);
  return count;
}

Protocol ClusterSpec::protocol() const {
  if (fabric) return fabric->nic().protocol;
  std::optional<Protocol> common;
  for (const ServerSpec& server : servers) {
    const Protocol own = server.fabric ? server.fabric->nic().protocol : Protocol::ideal;
    if (common && *common != own) return Protocol::tcp;
    common = own;
  }
  return common.value_or(Protocol::ideal);
}

ClusterSpec read_cluster(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar && !node.scalar.empty()) return load_cluster(node.scalar, node.pos);
  return ClusterReader(node).read();
}

}  // namespace convoy
