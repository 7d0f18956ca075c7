// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// A graph as general partitioners take it: without directions, with whole 32-bit weights, in compressed
/// rows.
struct UndirectedGraph {
  std::vector<std::int32_t> begin, neighbours;
  std::vector<std::int32_t> node_weights;  ///< max(1, microseconds), scaled down where their sum is too large
  std::vector<std::int32_t> edge_weights;  ///< max(1, bytes / scale): together about 2.5e8
};
UndirectedGraph undirected(const Dag& dag);

}  // namespace convoy::partition
