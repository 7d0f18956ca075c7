// SPDX-License-Identifier: MIT
#include "strategies/partition/cluster_messages.h"

#include <numeric>

namespace convoy::inline partition {

ClusterMessages::ClusterMessages(const Dag& dag, const Slices& slices, const std::vector<double>& message_us)
    : begin_(slices.clusters.size() + 1) {
  const std::vector<std::uint32_t>& cluster_of = slices.cluster_of;
  for (NodeId v = 0; v < dag.size(); ++v)
    for (const NodeId w : dag.children(v))
      if (cluster_of[v] != cluster_of[w]) ++begin_[cluster_of[v] + 1], ++begin_[cluster_of[w] + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  other_.resize(begin_.back());
  cost_us_.resize(begin_.back());
  std::vector<std::size_t> end(begin_.begin(), begin_.end() - 1);  // of those listed so far
  // A cluster is a path, so its nodes come in their order; and those around a node lie nearer to it in
  // memory than those along a path do.
  for (const NodeId v : dag.order()) {
    const auto list = [&, cluster = cluster_of[v]](NodeId neighbour, NodeId sender) {
      if (cluster_of[neighbour] == cluster) return;
      other_[end[cluster]] = cluster_of[neighbour];
      cost_us_[end[cluster]++] = message_us[sender];
    };
    for (const NodeId w : dag.children(v)) list(w, v);
    for (const NodeId u : dag.parents(v)) list(u, u);
  }
}

}  // namespace convoy::partition
