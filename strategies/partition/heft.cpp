// SPDX-License-Identifier: MIT
// Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous
// computing, IEEE TPDS 13(3), 2002, on equal processors.
#include <algorithm>
#include <limits>

#include "strategies/partition/gaps.h"
#include "strategies/partition/method.h"

namespace convoy {

PartitionAnswer partition_heft(const PartitionTask& task) {
  const Dag& dag = task.dag;
  const std::vector<double> message = message_costs(dag, task.link);
  const std::vector<double> rank = bottom_levels(dag, message);
  std::vector<NodeId> sequence = dag.order();
  std::stable_sort(sequence.begin(), sequence.end(), [&](NodeId a, NodeId b) { return rank[a] > rank[b]; });

  PartitionAnswer answer{Placement(dag.size()), Schedule{}};
  Schedule& schedule = *answer.schedule;
  schedule.start_us.resize(dag.size());
  schedule.finish_us.resize(dag.size());
  std::vector<Gaps> gaps(task.parts);
  std::vector<double> ready(task.parts);
  for (const NodeId v : sequence) {
    find_ready(dag, v, answer.placement, schedule.finish_us, message, ready);
    Part best = 0;
    double best_start = std::numeric_limits<double>::infinity();
    for (Part part = 0; part < task.parts; ++part) {
      if (ready[part] >= best_start) continue;
      const double start = gaps[part].earliest(ready[part], dag.time_us(v));
      if (start < best_start) best = part, best_start = start;
    }
    const double finish = best_start + dag.time_us(v);
    gaps[best].take(best_start, finish);
    answer.placement[v] = best;
    schedule.start_us[v] = best_start;
    schedule.finish_us[v] = finish;
    schedule.makespan_us = std::max(schedule.makespan_us, finish);
  }
  return answer;
}

}  // namespace convoy
