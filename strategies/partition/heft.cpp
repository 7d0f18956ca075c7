// SPDX-License-Identifier: MIT
// Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous
// computing, IEEE TPDS 13(3), 2002, on equal processors.
#include "strategies/partition/insertion_schedule.h"
#include "strategies/partition/longest_first.h"

namespace convoy::inline partition {

PartitionAnswer partition_heft(const PartitionTask& task) {
  const Dag& dag = task.dag;
  const std::vector<double> message = message_costs(dag, task.link);
  const std::vector<double> rank = bottom_levels(dag, message);
  InsertionSchedule schedule(task, message);
  for (const NodeId v : longest_first(dag.order(), [&](NodeId node) { return rank[node]; }))
    schedule.place(v, task.parts);
  return schedule.take();
}

}  // namespace convoy::partition
