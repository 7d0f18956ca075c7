// SPDX-License-Identifier: MIT
#include "topologies/fabrics/cable_graph.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "topologies/shortest_paths.h"

namespace convoy::inline topologies {
namespace {

/// Of a way's cost for each cable, so that of ways of equal latency those of fewest cables are the cheapest: far
/// below any latency that a file gives.
constexpr double cost_of_cable_s = 1e-15;

class GraphRoutes final : public FabricRoutes {
 public:
  GraphRoutes(const CableGraph& graph, std::span<const FabricHost> hosts, double message_overhead_s,
              LinkTable& links)
      : nics_(graph.nics), stacks_(add_cables(graph, hosts, message_overhead_s, links)) {
    transit_.assign(graph.hosts * graph.nics, graph.hosts_forward);
    transit_.resize(graph.hosts * graph.nics + graph.switches.size(), true);
    beside_.resize(transit_.size());
    for (Direction d = 0; d < 2 * cables_.size(); ++d) {
      const Cable& cable = cables_[d / 2];
      beside_[d % 2 == 0 ? cable.a : cable.b].push_back(d);
    }
    for (std::uint32_t nic = 0; nic < graph.hosts * graph.nics; ++nic)
      cost_to_.push_back(shortest_paths(cables_, transit_, nic).cost);
  }

  bool reaches(std::uint32_t from, std::uint32_t to) const { return std::isfinite(cost_to_[to][from]); }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    stacks_.append_up(from.host, links);
    const auto place = [&](FabricPort port) {
      return static_cast<std::uint32_t>(port.host * nics_ + port.nic);
    };
    const std::uint32_t end = place(to);
    std::uint32_t turn = end;
    for (std::uint32_t at = place(from); at != end;) {
      const Direction d = next(at, end, turn);
      links.push_back(first_ + d);
      at = there(d);
    }
    stacks_.append_down(to.host, links);
  }

 private:
  std::uint32_t there(Direction d) const { return d % 2 == 0 ? cables_[d / 2].b : cables_[d / 2].a; }

  /// The next cable of a cheapest way; every one of them comes closer, so that the way ends.
  /// @param turn the receiver's number, of which each choice takes one digit: were it the same digit at every level
  /// of switches, the choice at the first would decide all others, and most cables would stay empty
  Direction next(std::uint32_t at, std::uint32_t end, std::uint32_t& turn) const {
    constexpr double rounding = 1e-12;
    const std::vector<double>& cost = cost_to_[end];
    std::vector<Direction> cheapest;
    for (const Direction d : beside_[at]) {
      const std::uint32_t then = there(d);
      if (then != end && !transit_[then]) continue;
      if (cost[then] < cost[at] && cost[then] + cables_[d / 2].cost <= cost[at] * (1 + rounding))
        cheapest.push_back(d);
    }
    const auto choices = static_cast<std::uint32_t>(cheapest.size());
    const std::uint32_t chosen = turn % choices;
    turn /= choices;
    return cheapest[chosen];
  }

  StackLinks add_cables(const CableGraph& graph, std::span<const FabricHost> hosts, double message_overhead_s,
                        LinkTable& links) {
    const std::size_t nics = graph.hosts * graph.nics;
    const auto name = [&](std::uint32_t place) {
      if (place >= nics) return graph.switches[place - nics];
      const std::string& host = hosts[place / graph.nics].name;
      return graph.nics == 1 ? host : fmt::format("{}.nic{}", host, place % graph.nics);
    };
    first_ = static_cast<LinkId>(links.links().size());
    std::vector<double> capacity_Bps(hosts.size(), 0);
    for (const CableGraph::Cable& cable : graph.cables) {
      cables_.push_back({cable.a, cable.b, cable.bandwidth_Bps, cable.latency_s,
                         cable.latency_s + cost_of_cable_s, LinkKind::network,
                         name(cable.a) + '-' + name(cable.b)});
      links.add_cable(cables_.back().name, cable.bandwidth_Bps, cable.latency_s);
      for (const std::uint32_t end : {cable.a, cable.b})
        if (end < nics) capacity_Bps[end / graph.nics] += cable.bandwidth_Bps;
    }
    return StackLinks(hosts, capacity_Bps, message_overhead_s, links);
  }

  std::size_t nics_;
  std::vector<Cable> cables_;
  LinkId first_ = 0;
  StackLinks stacks_;
  std::vector<bool> transit_;                   ///< by place
  std::vector<std::vector<Direction>> beside_;  ///< by place: the ways out of it
  std::vector<std::vector<double>>
      cost_to_;  ///< by NIC, then place: of the cheapest way from the place to it
};

class CableGraphFabric final : public Fabric {
 public:
  CableGraphFabric(const YamlMap& map, const NicSpec& nic, CableGraph graph)
      : Fabric(map, nic), graph_(std::move(graph)) {}
  bool has_nics() const override { return false; }

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    if (hosts.size() != graph_.hosts)
      fail(fmt::format("the cluster has {} hosts, dedicated servers included, and the file {}", hosts.size(),
                       graph_.hosts));
    const std::size_t nics = graph_.hosts * graph_.nics;
    if (nics > most_graph_nics || nics + graph_.switches.size() > most_graph_places)
      fail(fmt::format("{} NICs and {} switches; a fabric of a file may have {} and {} together", nics,
                       graph_.switches.size(), most_graph_nics, most_graph_places));
    auto routes = std::make_unique<GraphRoutes>(graph_, hosts, nic().message_overhead_s, links);
    for (std::uint32_t from = 0; from < nics; ++from)
      for (std::uint32_t to = 0; to < nics; ++to)
        if (from / graph_.nics != to / graph_.nics && !routes->reaches(from, to))
          fail(fmt::format("no way from NIC {} of '{}' to NIC {} of '{}'", from % graph_.nics,
                           hosts[from / graph_.nics].name, to % graph_.nics, hosts[to / graph_.nics].name));
    return routes;
  }
  std::string text() const override { return graph_.text; }

 private:
  CableGraph graph_;
};

}  // namespace

std::shared_ptr<const Fabric> make_cable_graph_fabric(const YamlMap& map, NicSpec nic, CableGraph graph) {
  nic.count = static_cast<std::uint32_t>(graph.nics);
  return std::make_shared<CableGraphFabric>(map, nic, std::move(graph));
}

}  // namespace convoy::topologies
