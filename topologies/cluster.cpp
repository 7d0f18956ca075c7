// SPDX-License-Identifier: MIT
#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/key_parts.h"
#include "sim/base/unexpected_value.h"
#include "topologies/catalog.h"
#include "topologies/cluster_keys.h"
#include "topologies/host_names.h"
#include "topologies/inventory.h"
#include "topologies/power_limit.h"

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t max_hosts = 2'000'000;
constexpr std::size_t max_entries = 10'000;  // each is compared with each, for double names

/// An entry of `nodes` while it is read.
struct NodeDraft {
  NodeGroup group;
  SourcePos name_pos;
  std::string path;
  YamlNode server;
};

/// A cluster while it is read: its own servers and devices first, then what names them.
struct ClusterDraft {
  ClusterSpec cluster;
  std::optional<Inventory> inventory;
  bool one_server = false;  ///< `server` with a number of nodes, no list of them
  double speed_spread = 0;
};

double read_spread(YamlMap& map, std::string_view key, double fallback) {
  const double spread = map.quantity_or(key, Dimension::fraction, fallback);
  if (spread >= 1)
    map.fail(key, fmt::format("must be below 100%: a {} cannot be zero",
                              key == "nic_spread" ? "NIC's rate" : "device's speed"));
  return spread;
}

ValueForm spread_form() { return forms::share().said("a share below 100%"); }

/// Share by which something is drawn around its mean.
template <class Options, class Field>
Key<Options> spread_key(std::string name, std::string otherwise, std::string meaning, Field field) {
  return {key_text(name, std::move(otherwise), spread_form(), std::move(meaning)),
          [name, field](YamlMap& map, Options& options) {
            std::invoke(field, options) = read_spread(map, name, std::invoke(field, options));
          }};
}

/// A server by name, or one that is described there.
ValueForm server_form() {
  return forms::either({forms::text("a name", "servers"), forms::section("described-server", "a mapping")});
}

std::string name_of_described(const YamlNode& server) {
  const YamlNode* name = server.find("name");
  if (name && name->kind != YamlNode::Kind::null) return read_text(*name, "name");
  const YamlNode* base = server.find("base");
  return base ? read_text(*base, "base") + ", changed" : "server";
}

/// A server by name, or one that is described there: called by its `name`, else by its base's.
std::uint32_t add_server(ClusterDraft& draft, const YamlNode& server, const std::string& path) {
  std::vector<ServerSpec>& servers = draft.cluster.servers;
  const bool described = server.kind == YamlNode::Kind::mapping;
  const std::string name = described ? name_of_described(server) : read_text(server, path);
  for (std::uint32_t s = 0; s < servers.size(); ++s)
    if (servers[s].host.server == name) {
      if (described)
        throw InputError(server.pos, fmt::format("{}: there is a server '{}' already; give this one a `name`",
                                                 path, name));
      return s;
    }
  if (described) {
    YamlNode node = server;
    std::erase_if(node.entries, [](const auto& entry) { return entry.first == "name"; });
    servers.push_back(draft.inventory->read_own_server(name, node, path));
  } else {
    servers.push_back(draft.inventory->find_server(name, server.pos));
  }
  return static_cast<std::uint32_t>(servers.size() - 1);
}

/// The keys of `fabric` that change the server's own: those without a `kind`, beside `server`. Else nullptr.
const YamlNode* changes_of_fabric(YamlMap& map, const ClusterDraft& draft) {
  const YamlNode* fabric = draft.one_server ? map.find("fabric") : nullptr;
  return fabric && fabric->kind == YamlNode::Kind::mapping && !fabric->find("kind") ? fabric : nullptr;
}

/// The server on its own fabric but for these keys, as if `server` said them; it keeps its name.
std::uint32_t add_server_on(const YamlNode& fabric, YamlMap& map, ClusterDraft& draft) {
  YamlNode server = map.node("server");
  std::string name;
  if (server.kind == YamlNode::Kind::mapping) {
    if (server.find("fabric"))
      throw InputError(fabric.pos,
                       map.path_of("fabric") + ": the server says its `fabric` itself; say all of it there");
    name = name_of_described(server);
  } else {
    name = draft.inventory->find_server(read_text(server, map.path_of("server")), server.pos).host.server;
    YamlNode changed;
    changed.kind = YamlNode::Kind::mapping;
    changed.pos = server.pos;
    changed.entries.emplace_back("base", std::move(server));
    server = std::move(changed);
  }
  server.entries.emplace_back("fabric", fabric);
  const std::uint32_t added = add_server(draft, server, map.path());
  draft.cluster.servers[added].host.server = std::move(name);
  return added;
}

const Keys<NodeDraft>& node_keys() {
  using D = NodeDraft;
  static const Keys<D> keys{
      custom_key<D>("name", "n", forms::text("letters, digits, - and _"),
                    "of its hosts, which are numbered: n0, n1, ...",
                    [](YamlMap& map, D& draft) {
                      draft.path = map.path();
                      draft.name_pos = map.pos("name");
                      draft.group.name = map.text_or("name", "n");
                      check_host_name(map, draft.group.name);
                    }),
      optional_integer_key<D>("count", "1", 1, max_hosts, "of equal hosts",
                              [](D& d) -> std::uint32_t& { return d.group.count; }),
      optional_number_key<D>("speed", "1", 1e-6, 1e6, "of every device, times its own",
                             [](D& d) -> double& { return d.group.speed; }),
      spread_key<D>("speed_spread", "as speed_variation.spread", "as speed_variation.spread",
                    [](D& d) -> double& { return d.group.speed_spread; }),
      optional_quantity_key<D>("nic_bandwidth", "the fabric's", Dimension::bandwidth, true, "of each NIC",
                               [](D& d) -> std::optional<double>& { return d.group.nic_bandwidth_Bps; }),
      spread_key<D>("nic_spread", "0%",
                    "each host's NICs are drawn from their bandwidth more or less so much",
                    [](D& d) -> double& { return d.group.nic_spread; }),
      custom_key<D>("server", "", server_form(), "of the cluster's `servers` or the catalogue",
                    [](YamlMap& map, D& draft) { draft.server = map.node("server"); })
          .told_required()};
  return keys;
}

void add_group(ClusterDraft& draft, NodeDraft entry) {
  ClusterSpec& cluster = draft.cluster;
  entry.group.server = add_server(draft, entry.server, entry.path + ".server");
  for (const NodeGroup& other : cluster.groups)
    if (const std::optional<std::string> host =
            common_host({other.name, other.count}, {entry.group.name, entry.group.count}))
      throw InputError(
          entry.name_pos,
          fmt::format("{}.name: two entries of nodes make a host '{}': give them different names", entry.path,
                      *host));
  cluster.groups.push_back(std::move(entry.group));
}

void read_node_list(YamlMap& map, ClusterDraft& draft) {
  if (!map.find("nodes"))
    map.fail("needs `server` with `nodes: N`, or a list of `nodes`, or the name of a catalogue cluster");
  std::int64_t hosts = 0;
  if (const YamlNode& list = map.node("nodes"); list.items.size() > max_entries)
    map.fail("nodes", fmt::format("{} entries; at most {} are allowed (an entry's `count` makes equal hosts)",
                                  list.items.size(), max_entries));
  for (YamlMap& item : map.maps("nodes")) {
    NodeDraft entry;
    entry.group.count = 1;
    entry.group.speed_spread = draft.speed_spread;
    read_part(node_keys(), std::move(item), entry);
    hosts += entry.group.count;
    add_group(draft, std::move(entry));
  }
  if (hosts == 0) map.fail("nodes", "a cluster needs at least one node");
  if (hosts > max_hosts) map.fail("nodes", fmt::format("{} hosts; at most {} are allowed", hosts, max_hosts));
}

void read_nodes(YamlMap& map, ClusterDraft& draft) {
  if (!draft.one_server) return read_node_list(map, draft);
  if (const YamlNode* nodes = map.find("nodes"); nodes && nodes->kind == YamlNode::Kind::sequence)
    fail_unexpected(*nodes, map.path_of("nodes"),
                    "a whole number beside `server` (a list of nodes names each entry's server itself)");
  NodeGroup group;
  group.name = "n";
  group.count = static_cast<std::uint32_t>(map.integer_or("nodes", 1, 1, max_hosts));
  const YamlNode* fabric = changes_of_fabric(map, draft);
  group.server = fabric ? add_server_on(*fabric, map, draft)
                        : add_server(draft, map.node("server"), map.path_of("server"));
  group.speed_spread = draft.speed_spread;
  draft.cluster.groups.push_back(std::move(group));
}

void read_cluster_name(YamlMap& map, ClusterDraft& draft) {
  ClusterSpec& cluster = draft.cluster;
  const NodeGroup& first = cluster.groups.front();
  cluster.name = map.text_or("name", draft.one_server ? fmt::format("{} x {}", first.count,
                                                                    cluster.servers[first.server].host.server)
                                                      : "cluster");
}

void read_devices_per_node(YamlMap& map, ClusterDraft& draft) {
  if (!map.find("devices_per_node")) return;
  ClusterSpec& cluster = draft.cluster;
  cluster.devices_per_node = static_cast<std::uint32_t>(map.integer("devices_per_node", 1));
  for (const ServerSpec& server : cluster.servers)
    if (server.device_count() < cluster.devices_per_node)
      map.fail("devices_per_node",
               fmt::format("{} are asked for, but server '{}' has {}", cluster.devices_per_node,
                           server.host.server, server.device_count()));
}

const Keys<ClusterDraft>& dedicated_keys() {
  using D = ClusterDraft;
  static const Keys<D> keys{
      custom_key<D>("server", "the first node's without its devices", forms::text("a name", "servers"),
                    "what they are",
                    [](YamlMap& map, D& draft) {
                      if (map.find("server"))
                        draft.cluster.dedicated.server = std::make_shared<ServerSpec>(
                            draft.inventory->find_server(map.text("server"), map.pos("server")));
                    }),
      custom_key<D>("nic_bandwidth", "the fabric's", forms::quantity(Dimension::bandwidth, true),
                    "of each NIC",
                    [](YamlMap& map, D& draft) {
                      if (!map.find("nic_bandwidth")) return;
                      draft.cluster.dedicated.nic_bandwidth_Bps =
                          map.quantity("nic_bandwidth", Dimension::bandwidth, true);
                      if (draft.cluster.fabric && !draft.cluster.fabric->has_nics())
                        map.fail("nic_bandwidth", "this kind of fabric has no use for it");
                    }),
      optional_quantity_key<D>(
          "price", "the server's host.price", Dimension::price, false, "of each",
          [](D& d) -> std::optional<double>& { return d.cluster.dedicated.price_usd_per_h; })};
  return keys;
}

void read_cluster_power_limit(YamlMap& map, ClusterDraft& draft) {
  if (!map.find("power_limit")) return;
  const double limit_w = map.quantity("power_limit", Dimension::power, true);
  for (ServerSpec& server : draft.cluster.servers)
    for (auto& [type, count] : server.devices) {
      if (limit_w <= type.idle_power_w)
        map.fail("power_limit",
                 fmt::format("must be above the idle power of '{}', {} W", type.name, type.idle_power_w));
      limit_power(type, limit_w);
    }
}

Keys<ClusterDraft> speed_variation_keys() {
  using D = ClusterDraft;
  return {spread_key<D>("spread", "0%", "each device's speed is drawn from 1 more or less so much",
                        &D::speed_spread),
          optional_integer_key<D>("seed", "1", 0, YamlMap::max_integer, "of all that is drawn",
                                  [](D& d) -> std::uint64_t& { return d.cluster.speed_seed; })};
}

/// What there is: servers, nodes, and what joins them.
Keys<ClusterDraft> node_part_keys() {
  using D = ClusterDraft;
  const auto itself = [](D& draft) -> D& { return draft; };
  return {custom_key<D>("devices", "none",
                        forms::entries(forms::section("device", "a device"), "a mapping of names"),
                        "devices of its own (`convoy show keys device`), before the catalogue's",
                        [](YamlMap& map, D& draft) { draft.inventory.emplace(map); }),
          custom_key<D>(
              "servers", "none", forms::entries(forms::section("server", "a server"), "a mapping of names"),
              "servers of its own (`convoy show keys server`), before the catalogue's", [](YamlMap&, D&) {}),
          mapping_key<D>("speed_variation", "none", "devices that are not equally fast",
                         speed_variation_keys(), itself),
          custom_key<D>("server", "", server_form(), "of all nodes; else `nodes` is a list",
                        [](YamlMap& map, D& draft) { draft.one_server = map.find("server") != nullptr; }),
          list_key<D>(
              "nodes", "1",
              forms::either({forms::whole(1, max_hosts), keys_detail::list_of_parts(texts_of(node_keys()))}),
              "how many of `server`, or entries of equal hosts", &read_nodes)
              .with_parts(texts_of(node_keys())),
          custom_key<D>("nic_spread", "0%", spread_form(), "as a node's",
                        [](YamlMap& map, D& draft) {
                          draft.cluster.groups.front().nic_spread = read_spread(map, "nic_spread", 0);
                        })
              .only("server", [](const D& draft) { return draft.one_server; }),
          custom_key<D>("name", "N x SERVER, or cluster", forms::text("a text"), "of the cluster",
                        &read_cluster_name),
          custom_key<D>("fabric", "the servers' own",
                        forms::either({forms::section("fabric", "{kind, ...}"),
                                       forms::changes("fabric", "{bandwidth, ...} without kind")}),
                        "what joins the hosts; without a kind, what differs from the fabric of `server`",
                        [](YamlMap& map, D& draft) {
                          if (changes_of_fabric(map, draft)) return;  // read with the server
                          if (const YamlNode* fabric = map.find("fabric"))
                            draft.cluster.fabric = read_fabric(*fabric, map.path_of("fabric"));
                        }),
          custom_key<D>("devices_per_node", "all of them", forms::whole(1, YamlMap::max_integer),
                        "use only so many of each host", &read_devices_per_node)};
}

Keys<ClusterDraft> make_cluster_keys() {
  using D = ClusterDraft;
  const auto itself = [](D& draft) -> D& { return draft; };
  Keys<D> keys = node_part_keys();
  append_keys(
      keys,
      Keys<D>{mapping_key<D>("dedicated", "as the first node", "hosts of dedicated parameter servers",
                             dedicated_keys(), itself),
              custom_key<D>("power_limit", "none", forms::quantity(Dimension::power, true),
                            "of every device, as its own", &read_cluster_power_limit),
              custom_key<D>("step_jitter", "the servers'",
                            forms::quantity(Dimension::fraction).said("a fraction up to 50%"),
                            "what devices wait for the last of them in a step, by chance",
                            [](YamlMap& map, D& draft) {
                              if (map.find("step_jitter")) draft.cluster.step_jitter = read_step_jitter(map);
                            }),
              mapping_key<D>("communication", "none", "what every collective costs beside its messages",
                             Keys<D>{optional_quantity_key<D>(
                                 "overhead", "0s", Dimension::time, false, "before its first message",
                                 [](D& d) -> double& { return d.cluster.collective_overhead_s; })},
                             itself),
              optional_text_key<D>("title", "none", "a text", "for people",
                                   [](D& d) -> std::string& { return d.cluster.title; }),
              custom_key<D>("sources", "none", sources_form(), "where the numbers are from",
                            [](YamlMap& map, D& draft) { draft.cluster.sources = read_sources(map); })});
  return keys;
}

const Keys<ClusterDraft>& all_cluster_keys() {
  static const Keys<ClusterDraft> keys = make_cluster_keys();
  return keys;
}

void check_fabric(const YamlMap& map, const ClusterSpec& cluster) {
  if (cluster.fabric) {
    for (const NodeGroup& group : cluster.groups)
      if ((group.nic_bandwidth_Bps || group.nic_spread > 0) && !cluster.fabric->has_nics())
        map.fail("fabric", fmt::format("node '{}' has a `{}`, which this kind of fabric has no use for",
                                       group.name, group.nic_bandwidth_Bps ? "nic_bandwidth" : "nic_spread"));
    return;
  }
  if (cluster.node_count() == 1) return;
  for (const ServerSpec& server : cluster.servers) {
    if (!server.fabric)
      map.fail(
          fmt::format("key 'fabric' is missing, and server '{}' names none of its own, such as "
                      "{{kind: switch, bandwidth: 10Gbps, latency: 25us}}",
                      server.host.server));
    if (cluster.servers.size() > 1 && !server.fabric->mixes())
      map.fail(fmt::format("key 'fabric' is missing: the servers' own fabrics ('{}': {}) cannot be mixed",
                           server.host.server, server.fabric->text()));
  }
}

Source source_of_protocol(const Sources& sources) {
  const Source* source = find_source(sources, "fabric.protocol");
  return source ? *source : Source{};
}

/// Where nobody says what hosts of these servers speak.
SpokenProtocol untold_protocol(std::span<const ServerSpec* const> servers) {
  const bool exact = std::all_of(servers.begin(), servers.end(), [](const ServerSpec* server) {
    return std::all_of(server->devices.begin(), server->devices.end(),
                       [](const auto& devices) { return devices.first.is_exact(); });
  });
  if (exact) return {};
  return {Protocol::tcp, {Grade::unstated, std::nullopt, "the fabric says no protocol"}};
}

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

SpokenProtocol ClusterSpec::protocol() const {
  std::vector<const ServerSpec*> all;
  for (const ServerSpec& server : servers) all.push_back(&server);
  if (!fabric) return protocol_between(all);
  const std::optional<Protocol> told = fabric->nic().protocol;
  return told ? SpokenProtocol{*told, source_of_protocol(sources)} : untold_protocol(all);
}

SpokenProtocol protocol_between(std::span<const ServerSpec* const> servers) {
  std::optional<SpokenProtocol> common;
  for (const ServerSpec* server : servers) {
    if (!server->fabric || !server->fabric->nic().protocol) return untold_protocol(servers);
    const SpokenProtocol own{*server->fabric->nic().protocol, source_of_protocol(server->sources)};
    if (!common) {
      common = own;
      continue;
    }
    if (own.protocol != common->protocol) common->protocol = Protocol::tcp;
    if (own.assumed()) common->source = own.source;
  }
  return common.value_or(SpokenProtocol{});
}

std::string burst_text(const ClusterSpec& cluster) {
  const auto gbit_per_s = [](double bytes_per_s) { return 8e-9 * bytes_per_s; };
  std::string text;
  const auto add = [&](const std::string& whose, const NicSpec& nic) {
    const double sustained_Bps = nic.bandwidth_Bps / nic.efficiency;
    if (nic.burst_Bps <= sustained_Bps) return;
    text += fmt::format(
        "{}the network of {} sustains {:.4g} Gbit/s, which is simulated, and gives {:.4g} Gbit/s for a while",
        text.empty() ? "" : "; ", whose, gbit_per_s(sustained_Bps), gbit_per_s(nic.burst_Bps));
  };
  if (cluster.fabric) {
    add("the cluster", cluster.fabric->nic());
  } else {
    for (const ServerSpec& server : cluster.servers)
      if (server.fabric) add(server.host.server, server.fabric->nic());
  }
  return text;
}

ClusterSpec read_cluster(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar && !node.scalar.empty()) return load_cluster(node.scalar, node.pos);
  ClusterDraft draft;
  draft.cluster.pos = node.pos;
  const YamlMap map(node, "cluster");
  read_part(all_cluster_keys(), map, draft);
  check_fabric(map, draft.cluster);
  return std::move(draft.cluster);
}

KeySection cluster_keys() {
  KeySection section{"cluster", "what an experiment runs on: {server, nodes: N}, or a list of nodes",
                     texts_of(all_cluster_keys())};
  std::vector<KeyText> of_equal = section.keys, listed;
  for (const KeyText& key : section.keys)
    if (key.name != "server" && key.name != "nic_spread") listed.push_back(key);
  for (KeyText& key : of_equal)
    if (key.name == "nodes") key.form = key.form.inner.front();
  for (KeyText& key : listed)
    if (key.name == "nodes")
      key.form = key.form.inner.back();
    else if (key.name == "fabric")
      key.form = key.form.inner.front();
  section.variants = {{"server", "", std::move(of_equal)}, {"nodes", "", std::move(listed)}};
  return section;
}

}  // namespace convoy::topologies
