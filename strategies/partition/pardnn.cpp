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

namespace convoy::inline partition {
namespace {

/// Each unit goes to the part where most of its own work and of the messages it exchanges are.
void collocate(const Dag& dag, const std::vector<double>& message, Part parts, Placement& placement) {
  std::vector<double> worth(parts);
  for (NodeId unit = 0; unit < dag.unit_count(); ++unit) {
    const auto members = dag.members(unit);
    if (members.size() == 1) continue;
    std::fill(worth.begin(), worth.end(), 0);
    for (const NodeId v : members) {
      worth[placement[v]] += dag.time_us(v);
      for (const NodeId w : dag.children(v))
        if (dag.unit(w) != unit) worth[placement[w]] += message[v];
      for (const NodeId u : dag.parents(v))
        if (dag.unit(u) != unit) worth[placement[u]] += message[u];
    }
    const auto best = static_cast<Part>(std::max_element(worth.begin(), worth.end()) - worth.begin());
    for (const NodeId v : members) placement[v] = best;
  }
}

/// The published phases before memory: linear clusters, mapped by slack, variables with what updates them.
Placement sliced_and_mapped(const PartitionTask& task, const ReadyOrder& judge) {
  Placement placement = map_clusters(task, slice(task));
  collocate(task.dag, judge.message_us(), task.parts, placement);
  return placement;
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
  Schedule schedule = schedule_within_memory(task, judge, placement);
  return {std::move(placement), std::move(schedule)};
}

PartitionAnswer partition_pardnn_published(const PartitionTask& task) {
  ReadyOrder judge(task.dag, task.link, task.parts);
  Placement placement(task.dag.size());
  if (task.parts > 1) placement = move_until_it_fits(task, judge, sliced_and_mapped(task, judge));
  Schedule schedule = schedule_within_memory(task, judge, placement);
  return {std::move(placement), std::move(schedule)};
}

}  // namespace convoy::partition
