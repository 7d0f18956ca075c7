// SPDX-License-Identifier: MIT
#include "topologies/fabrics/custom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topologies/cable_list.h"
#include "topologies/host_names.h"

namespace convoy::inline topologies {
namespace {

/// Hosts and switches together: the ways from every host are worked out when the machine is built.
constexpr std::size_t max_vertices = 2048;
constexpr std::size_t max_listed_cables = 16'384;

class CustomRoutes final : public FabricRoutes {
 public:
  CustomRoutes(std::vector<Cable> cables, const std::vector<bool>& transit, std::span<const FabricHost> hosts,
               double message_overhead_s, LinkTable& links)
      : cables_(std::move(cables)),
        first_(static_cast<LinkId>(links.links().size())),
        stacks_(add_cables(hosts, message_overhead_s, links)) {
    for (std::uint32_t h = 0; h < hosts.size(); ++h) trees_.push_back(shortest_paths(cables_, transit, h));
  }

  bool reaches(std::uint32_t from, std::uint32_t to) const { return std::isfinite(trees_[from].cost[to]); }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    stacks_.append_up(from.host, links);
    const std::size_t start = links.size();
    const PathTree& tree = trees_[from.host];
    for (std::uint32_t at = to.host; at != from.host;) {
      const Direction d = tree.arrives_by[at];
      links.push_back(first_ + d);
      at = d % 2 == 0 ? cables_[d / 2].a : cables_[d / 2].b;
    }
    std::reverse(links.begin() + static_cast<std::ptrdiff_t>(start), links.end());
    stacks_.append_down(to.host, links);
  }

 private:
  StackLinks add_cables(std::span<const FabricHost> hosts, double message_overhead_s,
                        LinkTable& links) const {
    std::vector<double> capacity_Bps(hosts.size(), 0);
    for (const Cable& cable : cables_) {
      links.add_cable(cable.name, cable.bandwidth_Bps, cable.latency_s);
      for (const std::uint32_t end : {cable.a, cable.b})
        if (end < hosts.size()) capacity_Bps[end] += cable.bandwidth_Bps;
    }
    return StackLinks(hosts, capacity_Bps, message_overhead_s, links);
  }

  std::vector<Cable> cables_;
  LinkId first_;
  StackLinks stacks_;
  std::vector<PathTree> trees_;  ///< by host
};

class CustomFabric final : public Fabric {
 public:
  CustomFabric(const YamlMap& map, const NicSpec& nic, std::vector<PlaceEntry> switches,
               std::vector<CableEntry> cables, bool hosts_forward)
      : Fabric(map, nic),
        switches_(std::move(switches)),
        cables_(std::move(cables)),
        hosts_forward_(hosts_forward) {}
  bool has_nics() const override { return false; }

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    const RuleNames names{{"hosts", std::count_if(hosts.begin(), hosts.end(), [](const FabricHost& host) {
                             return !is_server_host(host.name);
                           })}};
    const std::vector<std::string> switches = written_out(switches_, names);
    const std::vector<CableEntry> cables = written_out(cables_, names);
    if (hosts.size() + switches.size() > max_vertices)
      fail(fmt::format("{} hosts and {} switches; a custom fabric may have {} together", hosts.size(),
                       switches.size(), max_vertices));
    if (cables.size() > max_listed_cables)
      fail(fmt::format("{} cables; a custom fabric may have {}", cables.size(), max_listed_cables));
    std::map<std::string, std::uint32_t> vertices;
    for (const FabricHost& host : hosts) vertices.emplace(host.name, vertices.size());
    for (const std::string& name : switches)
      if (!vertices.emplace(name, vertices.size()).second)
        fail(fmt::format("'{}' is a host and a switch", name));
    std::vector<bool> transit(hosts.size(), hosts_forward_);
    transit.resize(vertices.size(), true);
    // One file serves strategies with and without dedicated servers: cables of servers that are not there are
    // left out.
    std::vector<CableEntry> there;
    const auto is_missing = [&](const std::string& name) {
      return is_server_host(name) && !vertices.contains(name);
    };
    for (const CableEntry& cable : cables)
      if (!is_missing(cable.from) && !is_missing(cable.to)) there.push_back(cable);
    auto routes = std::make_unique<CustomRoutes>(resolve_cables(there, vertices), transit, hosts,
                                                 nic().message_overhead_s, links);
    for (std::uint32_t from = 0; from < hosts.size(); ++from)
      for (std::uint32_t to = 0; to < hosts.size(); ++to)
        if (!routes->reaches(from, to))
          fail(fmt::format("no route from '{}' to '{}'{}", hosts[from].name, hosts[to].name,
                           is_server_host(hosts[to].name) || is_server_host(hosts[from].name)
                               ? "; dedicated parameter servers ps0, ps1, ... need cables too"
                               : ""));
    return routes;
  }

  std::string text() const override {
    const auto is_once = [](const auto& entry) { return entry.repeat.is_once(); };
    if (!std::all_of(switches_.begin(), switches_.end(), is_once) ||
        !std::all_of(cables_.begin(), cables_.end(), is_once))
      return "custom fabric by rule";
    return fmt::format("custom fabric of {} switches and {} cables", switches_.size(), cables_.size());
  }

 private:
  std::vector<PlaceEntry> switches_;
  std::vector<CableEntry> cables_;
  bool hosts_forward_;
};

struct CustomFabricDraft {
  NicSpec nic;
  std::vector<PlaceEntry> switches;
  std::vector<CableEntry> cables;
  bool hosts_forward = false;
};

const Keys<CustomFabricDraft>& custom_fabric_table() {
  using D = CustomFabricDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = keys_of_part<D>(payload_keys(), &D::nic);
    append_keys(table, keys_of_part<D>(protocol_keys(), &D::nic));
    append_keys(table,
                Keys<D>{list_key<D>("switches", "none", place_list_form(), "places beside the hosts",
                                    [](YamlMap& map, D& draft) { draft.switches = read_places(map); })
                            .with_parts(place_keys()),
                        list_key<D>("links", "", cable_list_form(CablePlace::fabric),
                                    "cables between hosts and switches",
                                    [](YamlMap& map, D& draft) {
                                      draft.cables =
                                          read_cable_list(map, draft.nic.efficiency, CablePlace::fabric);
                                    })
                            .told_required()
                            .with_parts(cable_entry_keys(CablePlace::fabric)),
                        flag_key<D>("hosts_forward", "hosts pass on what is others'", &D::hosts_forward)});
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> custom_fabric_keys() { return texts_of(custom_fabric_table()); }

std::shared_ptr<const Fabric> read_custom_fabric(YamlMap& map) {
  CustomFabricDraft draft;
  read_keys(custom_fabric_table(), map, draft);
  return std::make_shared<CustomFabric>(map, draft.nic, std::move(draft.switches), std::move(draft.cables),
                                        draft.hosts_forward);
}

}  // namespace convoy::topologies
