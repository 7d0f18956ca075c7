// SPDX-License-Identifier: MIT
#include "topologies/shortest_paths.h"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <compare>
#include <utility>

namespace convoy::inline topologies {
namespace {

/// Orders ways; the count of cables keeps every step dearer than nothing, so that ways never run in a circle.
struct Length {
  double cost = 0;
  std::uint32_t cables = 0;
  auto operator<=>(const Length&) const = default;
  Length operator+(const Length& o) const { return {cost + o.cost, cables + o.cables}; }
};

std::uint32_t tail(const std::vector<Cable>& cables, Direction d) {
  return d % 2 == 0 ? cables[d / 2].a : cables[d / 2].b;
}
std::uint32_t head(const std::vector<Cable>& cables, Direction d) {
  return d % 2 == 0 ? cables[d / 2].b : cables[d / 2].a;
}

}  // namespace

PathTree shortest_paths(const std::vector<Cable>& cables, const std::vector<bool>& transit,
                        std::uint32_t source) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Length>;
  const auto leads_on = [&](Direction d) {
    const std::uint32_t from = tail(cables, d);
    return from == source || transit[from];
  };
  const auto length = [&](Direction d) { return Length{cables[d / 2].cost, 1}; };

  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<Length> lengths;
  for (Direction d = 0; d < 2 * cables.size(); ++d) {
    if (!leads_on(d)) continue;
    edges.emplace_back(tail(cables, d), head(cables, d));
    lengths.push_back(length(d));
  }
  const Graph graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), lengths.begin(),
                    transit.size());

  const Length unreachable{std::numeric_limits<double>::infinity(), 0};
  std::vector<Length> distance(transit.size(), unreachable);
  boost::dijkstra_shortest_paths(graph, boost::vertex(source, graph),
                                 boost::weight_map(boost::get(boost::edge_bundle, graph))
                                     .distance_map(boost::make_iterator_property_map(
                                         distance.begin(), boost::get(boost::vertex_index, graph)))
                                     .distance_inf(unreachable)
                                     .distance_zero(Length{})
                                     .distance_compare(std::less<Length>{})
                                     .distance_combine(std::plus<Length>{}));

  // The predecessor is picked from the distances, by the order of the cables, so that it depends on the input
  // alone and not on the order in which a heap happens to yield equal vertices.
  PathTree tree{std::vector<double>(transit.size()), std::vector<Direction>(transit.size(), no_direction)};
  for (std::size_t v = 0; v < transit.size(); ++v) tree.cost[v] = distance[v].cost;
  for (Direction d = 0; d < 2 * cables.size(); ++d) {
    const std::uint32_t from = tail(cables, d), to = head(cables, d);
    if (!leads_on(d) || to == source || tree.arrives_by[to] != no_direction) continue;
    if (distance[from] != unreachable && distance[from] + length(d) == distance[to]) tree.arrives_by[to] = d;
  }
  return tree;
}

std::vector<Direction> path_to(const PathTree& tree, const std::vector<Cable>& cables, std::uint32_t to) {
  std::vector<Direction> path;
  for (Direction d = tree.arrives_by[to]; d != no_direction; d = tree.arrives_by[tail(cables, d)])
    path.push_back(d);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace convoy::topologies
