// SPDX-License-Identifier: MIT
// Placements that look at nothing or at one order of the nodes: what the others have to beat.
#include <algorithm>
#include <random>

#include "strategies/partition/method.h"

namespace convoy::inline partition {
namespace {

/// Each unit where its first member is.
PartitionAnswer with_units_whole(const Dag& dag, Placement placement) {
  for (NodeId unit = 0; unit < dag.unit_count(); ++unit)
    for (const NodeId v : dag.members(unit)) placement[v] = placement[dag.members(unit).front()];
  return {std::move(placement), std::nullopt};
}

}  // namespace

PartitionAnswer partition_round_robin(const PartitionTask& task) {
  Placement placement(task.dag.size());
  for (NodeId v = 0; v < task.dag.size(); ++v) placement[v] = v % task.parts;
  return with_units_whole(task.dag, std::move(placement));
}

PartitionAnswer partition_random(const PartitionTask& task) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(task.seed));
  Placement placement(task.dag.size());
  for (Part& part : placement) part = static_cast<Part>(random() % task.parts);
  return with_units_whole(task.dag, std::move(placement));
}

/// Reverse depth-first post-order, first children first, cut into blocks of equal work: node v belongs to the
/// block in which its middle lies.
PartitionAnswer partition_dfs(const PartitionTask& task) {
  const Dag& dag = task.dag;
  std::vector<NodeId> order;
  order.reserve(dag.size());
  std::vector<bool> seen(dag.size());
  std::vector<std::pair<NodeId, std::size_t>> path;  // node, children still to visit
  for (NodeId source = dag.size(); source-- > 0;) {
    if (!dag.parents(source).empty()) continue;
    seen[source] = true;
    path.emplace_back(source, dag.children(source).size());
    while (!path.empty()) {
      auto& [v, left] = path.back();
      if (left == 0) {
        order.push_back(v);
        path.pop_back();
        continue;
      }
      const NodeId w = dag.children(v)[--left];
      if (seen[w]) continue;
      seen[w] = true;
      path.emplace_back(w, dag.children(w).size());
    }
  }
  Placement placement(dag.size());
  const double share = dag.total_time_us() / task.parts;
  double before = 0;
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    const double block = share > 0 ? (before + dag.time_us(*v) / 2) / share : 0;
    placement[*v] = std::min(task.parts - 1, static_cast<Part>(block));
    before += dag.time_us(*v);
  }
  return with_units_whole(dag, std::move(placement));
}

}  // namespace convoy::partition
