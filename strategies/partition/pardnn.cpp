// SPDX-License-Identifier: MIT
// F. Qararyah, M. Wahib, D. Dikbayir, M. E. Belviranli, D. Unat: A computational-graph partitioning method
// for training memory-constrained DNNs, Parallel Computing 104-105, 2021 (arXiv 2008.08636); written from a
// description of the method. Placing anew in the order of readiness (refinement.h) and cutting by memory
// (memory_phase.h) are ours.
#include <algorithm>

#include "strategies/partition/mapping.h"
#include "strategies/partition/memory_phase.h"
#include "strategies/partition/method.h"
#include "strategies/partition/refinement.h"
#include "strategies/partition/slicing.h"
#include "strategies/partition/units.h"

namespace convoy::inline partition {
namespace {

/// The published phases before memory: linear clusters, mapped by slack, variables with what updates them.
Placement sliced_and_mapped(const PartitionTask& task, const ReadyOrder& judge) {
  Placement placement = map_clusters(task, slice(task));
  collocate(task.dag, judge.message_us(), task.parts, placement);
  return placement;
}

PartitionAnswer with_schedules(const PartitionTask& task, ReadyOrder& judge, Placement placement) {
  Schedule schedule = schedule_within_memory(task, judge, placement);
  Schedule ready = judge.schedule(placement);
  return {std::move(placement), std::move(schedule), std::move(ready)};
}

}  // namespace

PartitionAnswer partition_pardnn(const PartitionTask& task) {
  ReadyOrder judge(task.dag, task.link, task.parts);
  Placement placement(task.dag.size());
  if (task.parts > 1) {
    placement = sliced_and_mapped(task, judge);
    if (task.refine) placement = refine(judge, std::move(placement));
    placement = fit_memory(task, judge, std::move(placement));
  }
  return with_schedules(task, judge, std::move(placement));
}

PartitionAnswer partition_pardnn_published(const PartitionTask& task) {
  ReadyOrder judge(task.dag, task.link, task.parts);
  Placement placement(task.dag.size());
  if (task.parts > 1) placement = move_until_it_fits(task, judge, sliced_and_mapped(task, judge));
  return with_schedules(task, judge, std::move(placement));
}

}  // namespace convoy::partition
