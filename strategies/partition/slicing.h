// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/partition/method.h"

namespace convoy::inline partition {

/// A graph cut into linear clusters (paths; Qararyah et al., ParDNN, Parallel Computing 2021, slicing).
struct Slices {
  /// The first `primaries` of them are the longest ways of what their predecessors left; then the secondary
  /// ones, most critical head first.
  std::vector<std::vector<NodeId>> clusters;
  Part primaries = 0;                     ///< at most one a part
  std::vector<std::uint32_t> cluster_of;  ///< by node
  std::vector<double> top_us;     ///< longest way from a start to each node, its own time not included
  std::vector<double> weight_us;  ///< longest way through each node; both: messages within primaries are free
  double parallelism = 1;         ///< total work / work of the first primary
  double communication = 0;       ///< cost of all edges as messages / total work
};
Slices slice(const PartitionTask& task);

}  // namespace convoy::partition
