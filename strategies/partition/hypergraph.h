// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// Vertices with weights, nets with costs. Plain values.
struct Hypergraph {
  struct Net {
    double cost;
    std::vector<std::uint32_t> pins;  ///< vertices, each once
  };
  std::vector<double> weight;  ///< by vertex
  std::vector<Net> nets;
};

/// Sum over nets of cost (number of parts among its pins - 1).
double connectivity(const Hypergraph& graph, const Placement& parts);
/// Sum of the costs of nets with pins in more than one part.
double cut(const Hypergraph& graph, const Placement& parts);

/// How fast the device of each part is, in any unit, > 0: a part's share of the work is that of its speed.
using Speeds = std::vector<double>;
inline Speeds equal_speeds(Part count) { return Speeds(count, 1.0); }
/// What each part has if all have what their speeds are worth. @param weight of each vertex
std::vector<double> shares_of(const std::vector<double>& weight, const Speeds& speeds);
/// Weight over share of the part where that is greatest; 1 where there is no weight. @param weight as above
double imbalance(const std::vector<double>& weight, const Placement& parts, const Speeds& speeds);

/// A graph's nodes weighing their times, and a net for each output that anyone reads: its maker and its
/// readers, at the cost of its bytes. Its connectivity is what crosses between parts: cut_bytes(dag, parts).
/// Where nothing takes time, nodes weigh 1 each.
Hypergraph hypergraph_of(const Dag& dag);

}  // namespace convoy::partition
