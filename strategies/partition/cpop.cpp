// SPDX-License-Identifier: MIT
// Critical path on a processor: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, on equal processors.
#include <algorithm>
#include <queue>
#include <utility>

#include "strategies/partition/insertion_schedule.h"

namespace convoy::inline partition {
namespace {

/// Longest way to each node, messages and not its own time counted.
std::vector<double> top_levels(const Dag& dag, const std::vector<double>& message_us) {
  std::vector<double> level(dag.size(), 0);
  for (const NodeId v : dag.order())
    for (const NodeId w : dag.children(v))
      level[w] = std::max(level[w], level[v] + dag.time_us(v) + message_us[v]);
  return level;
}

/// From the node with the longest way through it along those that have ways as long.
std::vector<char> critical_path(const Dag& dag, const std::vector<double>& way) {
  constexpr double rounding = 1e-9;
  std::vector<char> on_path(dag.size(), 0);
  if (dag.size() == 0) return on_path;
  const double longest = *std::max_element(way.begin(), way.end()) * (1 - rounding);
  const auto head = [&](NodeId v) { return way[v] >= longest && dag.parents(v).empty(); };
  NodeId v = *std::find_if(dag.order().begin(), dag.order().end(), head);
  while (true) {
    on_path[v] = 1;
    const auto children = dag.children(v);
    const auto next =
        std::find_if(children.begin(), children.end(), [&](NodeId w) { return way[w] >= longest; });
    if (next == children.end()) return on_path;
    v = *next;
  }
}

}  // namespace

PartitionAnswer partition_cpop(const PartitionTask& task) {
  const Dag& dag = task.dag;
  const std::vector<double> message = message_costs(dag, task.link), before = top_levels(dag, message);
  std::vector<double> way = bottom_levels(dag, message);
  for (NodeId v = 0; v < dag.size(); ++v) way[v] += before[v];
  const std::vector<char> on_path = critical_path(dag, way);

  InsertionSchedule schedule(task, message);
  std::vector<std::uint32_t> missing(dag.size());
  std::priority_queue<std::pair<double, std::int64_t>> next;  // the longest way first, then the smaller id
  for (NodeId v = 0; v < dag.size(); ++v) {
    missing[v] = static_cast<std::uint32_t>(dag.parents(v).size());
    if (missing[v] == 0) next.emplace(way[v], -std::int64_t{v});
  }
  while (!next.empty()) {
    const auto v = static_cast<NodeId>(-next.top().second);
    next.pop();
    schedule.place(v, on_path[v] ? 1 : task.parts);
    for (const NodeId w : dag.children(v))
      if (--missing[w] == 0) next.emplace(way[w], -std::int64_t{w});
  }
  return schedule.take();
}

}  // namespace convoy::partition
