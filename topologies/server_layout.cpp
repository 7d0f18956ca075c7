// SPDX-License-Identifier: MIT
#include "topologies/server_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace convoy::inline topologies {
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
  graph.cables.push_back(
      {graph.memory_at, staged, bandwidth_Bps, 0, pcie_way_cost, LinkKind::memory, "copy"});
  graph.memory_at = staged;
  for (std::uint32_t& nic : graph.nics_at) nic = staged;
}

/// Whether a way over these cables needs peer-to-peer over PCIe.
bool crosses_pcie(const std::vector<Direction>& path, const InteriorGraph& graph) {
  return std::any_of(path.begin(), path.end(),
                     [&](Direction d) { return graph.cables[d / 2].kind != LinkKind::nvlink; });
}

}  // namespace

ServerLayout::ServerLayout(const Interior* interior, std::uint32_t devices, std::uint32_t nics,
                           double copy_bandwidth_Bps, Staging staging)
    : devices_(devices), nics_(nics), staging_(staging) {
  InteriorGraph graph = interior && devices > 1 ? interior->graph(devices, nics) : one_place(devices, nics);
  if (devices > 0 && std::isfinite(copy_bandwidth_Bps)) put_copies_before_memory(graph, copy_bandwidth_Bps);
  work_out_paths(graph);
}

void ServerLayout::work_out_paths(const InteriorGraph& graph) {
  std::vector<std::uint32_t> vertex_of = graph.devices_at;
  vertex_of.push_back(graph.memory_at);
  vertex_of.insert(vertex_of.end(), graph.nics_at.begin(), graph.nics_at.end());

  std::vector<std::vector<Direction>> paths;
  std::vector<std::vector<std::uint32_t>> nearest;  // NICs, by place up to the memory
  for (std::uint32_t from = 0; from < places(); ++from) {
    const PathTree tree = shortest_paths(graph.cables, graph.transit, vertex_of[from]);
    for (std::uint32_t to = 0; to < places(); ++to) {
      paths.push_back(path_to(tree, graph.cables, vertex_of[to]));
      std::erase_if(paths.back(), [&](Direction d) { return std::isinf(graph.cables[d / 2].bandwidth_Bps); });
    }
    if (from > memory()) continue;
    std::vector<std::uint32_t>& least_far = nearest.emplace_back();
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t n = 0; n < nics_; ++n) {
      const double cost = tree.cost[vertex_of[nic(n)]];
      if (cost < least) least_far.clear();
      if (cost <= least) least_far.push_back(n);
      least = std::min(least, cost);
    }
  }
  choose_nics(nearest);
  keep_paths(graph, paths);
}

void ServerLayout::choose_nics(const std::vector<std::vector<std::uint32_t>>& nearest) {
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>>
      sharers;  // places by the NICs nearest to them
  for (std::uint32_t place = 0; place < nearest.size(); ++place) sharers[nearest[place]].push_back(place);
  nearest_nic_.assign(devices_ + 1, 0);
  for (const auto& [nics, users] : sharers) {
    if (nics.empty()) continue;
    const std::size_t devices = users.back() == memory() ? users.size() - 1 : users.size();
    for (std::size_t i = 0; i < users.size(); ++i)
      nearest_nic_[users[i]] = users[i] == memory() ? nics[0] : nics[i * nics.size() / devices];
  }
}

void ServerLayout::keep_paths(const InteriorGraph& graph, const std::vector<std::vector<Direction>>& paths) {
  const auto way = [&](std::uint32_t from, std::uint32_t to) -> const std::vector<Direction>& {
    return paths[from * places() + to];
  };
  constexpr std::uint32_t unused = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> kept(graph.cables.size(), unused);
  for (const std::vector<Direction>& path : paths)
    for (const Direction d : path) kept[d / 2] = 0;
  for (std::uint32_t c = 0; c < graph.cables.size(); ++c) {
    if (kept[c] == unused) continue;
    kept[c] = static_cast<std::uint32_t>(cables_.size());
    cables_.push_back(graph.cables[c]);
  }
  const auto is_staged = [&](std::uint32_t from, std::uint32_t to) {
    return std::isfinite(staging_.bandwidth_Bps) && from != to && from < devices_ && to < devices_ &&
           crosses_pcie(way(from, to), graph);
  };
  const auto first_medium = static_cast<LinkId>(2 * cables_.size());
  const auto append = [&](const std::vector<Direction>& path) {
    for (const Direction d : path) path_links_.push_back(2 * kept[d / 2] + d % 2);
  };
  path_start_.push_back(0);
  for (std::uint32_t from = 0; from < places(); ++from) {
    for (std::uint32_t to = 0; to < places(); ++to) {
      if (is_staged(from, to)) {
        if (media_.empty()) add_media(graph, paths);
        append(way(from, memory()));
        path_links_.insert(path_links_.end(), {first_medium + 1 + from, first_medium, first_medium + 1 + to});
        append(way(memory(), to));
      } else {
        append(way(from, to));
      }
      path_start_.push_back(path_links_.size());
    }
  }
}

void ServerLayout::add_media(const InteriorGraph& graph, const std::vector<std::vector<Direction>>& paths) {
  media_.push_back({"staging", staging_.bandwidth_Bps});
  for (std::uint32_t d = 0; d < devices_; ++d) {
    double lanes_Bps = staging_.bandwidth_Bps / staging_.lane_share;
    if (const std::vector<Direction>& way = paths[d * places() + memory()]; !way.empty())
      lanes_Bps = std::min(lanes_Bps, graph.cables[way.front() / 2].bandwidth_Bps);
    media_.push_back({"gpu" + std::to_string(d) + ".staging", staging_.lane_share * lanes_Bps});
  }
}

LinkId ServerLayout::add_links(const std::string& name, LinkTable& table) const {
  const auto first = static_cast<LinkId>(table.links().size());
  for (const Cable& cable : cables_)
    table.add_cable(name + '.' + cable.name, cable.bandwidth_Bps, cable.latency_s, cable.kind);
  for (const Medium& medium : media_)
    table.add_medium(name + '.' + medium.name, medium.bandwidth_Bps, 0, LinkKind::memory);
  return first;
}

}  // namespace convoy::topologies
