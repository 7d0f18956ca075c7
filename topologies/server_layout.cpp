// SPDX-License-Identifier: MIT
#include "topologies/server_layout.h"

#include <cmath>
#include <map>

namespace convoy {
namespace {

InteriorGraph one_place(std::uint32_t devices, std::uint32_t nics) {
  InteriorGraph graph;
  const std::uint32_t place = graph.add_vertex(true);
  graph.devices_at.assign(devices, place);
  graph.memory_at = place;
  graph.nics_at.assign(nics, place);
  return graph;
}

/// Moves memory and NICs behind a cable that stands for the copies through host memory.
void put_copies_before_memory(InteriorGraph& graph, double bandwidth_Bps) {
  const std::uint32_t staged = graph.add_vertex(true);
  graph.cables.push_back({graph.memory_at, staged, bandwidth_Bps, 0, pcie_way_cost, "copy"});
  graph.memory_at = staged;
  for (std::uint32_t& nic : graph.nics_at) nic = staged;
}

}  // namespace

ServerLayout::ServerLayout(const Interior* interior, std::uint32_t devices, std::uint32_t nics,
                           double copy_bandwidth_Bps)
    : devices_(devices), nics_(nics) {
  InteriorGraph graph = interior && devices > 1 ? interior->graph(devices, nics) : one_place(devices, nics);
  if (devices > 0 && std::isfinite(copy_bandwidth_Bps)) put_copies_before_memory(graph, copy_bandwidth_Bps);
  work_out_paths(graph);
}

void ServerLayout::work_out_paths(const InteriorGraph& graph) {
  std::vector<std::uint32_t> vertex_of = graph.devices_at;
  vertex_of.push_back(graph.memory_at);
  vertex_of.insert(vertex_of.end(), graph.nics_at.begin(), graph.nics_at.end());

  constexpr std::uint32_t unused = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::vector<Direction>> paths;
  std::vector<bool> used(graph.cables.size(), false);
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>>
      sharers;  // places by the NICs nearest to them
  for (std::uint32_t from = 0; from < places(); ++from) {
    const PathTree tree = shortest_paths(graph.cables, graph.transit, vertex_of[from]);
    for (std::uint32_t to = 0; to < places(); ++to) {
      paths.push_back(path_to(tree, graph.cables, vertex_of[to]));
      std::erase_if(paths.back(), [&](Direction d) { return std::isinf(graph.cables[d / 2].bandwidth_Bps); });
      for (const Direction d : paths.back()) used[d / 2] = true;
    }
    if (from > memory()) continue;
    std::vector<std::uint32_t> nearest;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t n = 0; n < nics_; ++n) {
      const double cost = tree.cost[vertex_of[nic(n)]];
      if (cost < least) nearest.clear();
      if (cost <= least) nearest.push_back(n);
      least = std::min(least, cost);
    }
    sharers[nearest].push_back(from);
  }

  nearest_nic_.assign(devices_ + 1, 0);
  for (const auto& [nics, users] : sharers) {
    if (nics.empty()) continue;
    const std::size_t devices = users.back() == memory() ? users.size() - 1 : users.size();
    for (std::size_t i = 0; i < users.size(); ++i)
      nearest_nic_[users[i]] = users[i] == memory() ? nics[0] : nics[i * nics.size() / devices];
  }

  std::vector<std::uint32_t> kept(graph.cables.size(), unused);
  for (std::uint32_t c = 0; c < graph.cables.size(); ++c)
    if (used[c]) {
      kept[c] = static_cast<std::uint32_t>(cables_.size());
      cables_.push_back(graph.cables[c]);
    }
  path_start_.push_back(0);
  for (const std::vector<Direction>& path : paths) {
    for (const Direction d : path) path_links_.push_back(2 * kept[d / 2] + d % 2);
    path_start_.push_back(path_links_.size());
  }
}

LinkId ServerLayout::add_links(const std::string& name, LinkTable& table) const {
  const auto first = static_cast<LinkId>(table.links().size());
  for (const Cable& cable : cables_)
    table.add_cable(name + '.' + cable.name, cable.bandwidth_Bps, cable.latency_s);
  return first;
}

}  // namespace convoy
