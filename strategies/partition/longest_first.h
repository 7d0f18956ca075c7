// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// The nodes with the largest keys first; equal ones stay in their order. Keys are sorted with their nodes,
/// because looking them up by node at each comparison waits for memory in large graphs.
/// @param key of a node
template <typename Key>
std::vector<NodeId> longest_first(const std::vector<NodeId>& nodes, const Key& key) {
  std::vector<std::pair<double, NodeId>> keyed;
  keyed.reserve(nodes.size());
  for (const NodeId v : nodes) keyed.emplace_back(key(v), v);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<NodeId> sorted;
  sorted.reserve(nodes.size());
  for (const auto& entry : keyed) sorted.push_back(entry.second);
  return sorted;
}

}  // namespace convoy::partition
