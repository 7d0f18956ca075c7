// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "topologies/link_kind.h"

namespace convoy::inline topologies {

/// A full-duplex cable between two vertices of a small graph (the inside of a server, a custom fabric).
struct Cable {
  std::uint32_t a = 0, b = 0;
  double bandwidth_Bps = 0;
  double latency_s = 0;
  double cost = 0;  ///< for the choice of the way, >= 0; its unit is the graph's own
  LinkKind kind = LinkKind::network;
  std::string name;
};

/// A direction of a cable: 2 i for a to b, 2 i + 1 for b to a, with i the cable's index.
using Direction = std::uint32_t;
constexpr Direction no_direction = std::numeric_limits<Direction>::max();

struct PathTree {
  std::vector<double> cost;  ///< of each vertex from the source; infinite where there is no way
  std::vector<Direction>
      arrives_by;  ///< last direction of the way to each vertex; no_direction at the source
};

/// The cheapest ways from `source` (Dijkstra, Boost.Graph): least cost, then fewest cables, then the cable
/// that comes first in `cables`. Only vertices with `transit` pass on what is not theirs.
PathTree shortest_paths(const std::vector<Cable>& cables, const std::vector<bool>& transit,
                        std::uint32_t source);

/// Directions from the tree's source to `to`, in order; empty for the source itself.
std::vector<Direction> path_to(const PathTree& tree, const std::vector<Cable>& cables, std::uint32_t to);

}  // namespace convoy::topologies
