// SPDX-License-Identifier: MIT
#include "strategies/partition/undirected.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline partition {

UndirectedGraph undirected(const Dag& dag) {
  // The partitioners add weights up in 32 bits.
  constexpr double largest_edge_sum = 2.5e8, largest_node_sum = 1e9;
  double bytes = 0;
  for (NodeId v = 0; v < dag.size(); ++v)
    bytes += dag.output_bytes(v) * static_cast<double>(dag.children(v).size());
  const double edge_scale = std::max(1.0, bytes / largest_edge_sum);
  const double node_scale = std::max(1.0, dag.total_time_us() / largest_node_sum);
  const auto weight = [](double amount) {
    return static_cast<std::int32_t>(std::max(1.0, std::round(amount)));
  };
  UndirectedGraph graph;
  graph.begin.push_back(0);
  for (NodeId v = 0; v < dag.size(); ++v) {
    graph.node_weights.push_back(weight(dag.time_us(v) / node_scale));
    for (const NodeId u : dag.parents(v)) {
      graph.neighbours.push_back(static_cast<std::int32_t>(u));
      graph.edge_weights.push_back(weight(dag.output_bytes(u) / edge_scale));
    }
    for (const NodeId w : dag.children(v)) {
      graph.neighbours.push_back(static_cast<std::int32_t>(w));
      graph.edge_weights.push_back(weight(dag.output_bytes(v) / edge_scale));
    }
    graph.begin.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  }
  return graph;
}

}  // namespace convoy::partition
