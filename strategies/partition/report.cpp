// SPDX-License-Identifier: MIT
#include "strategies/partition/report.h"

#include <algorithm>

namespace convoy::inline partition {
namespace {

bool fit(const PartitionTask& task, const MemoryUse& use) {
  return !task.memory_bytes || std::all_of(use.peak_bytes.begin(), use.peak_bytes.end(),
                                           [&](double peak) { return peak <= *task.memory_bytes; });
}

}  // namespace

double cut_bytes(const Dag& dag, const Placement& placement) {
  double bytes = 0;
  std::vector<Part> readers;
  for (NodeId v = 0; v < dag.size(); ++v) {
    readers.clear();
    for (const NodeId w : dag.children(v))
      if (placement[w] != placement[v]) readers.push_back(placement[w]);
    std::sort(readers.begin(), readers.end());
    const auto count = std::unique(readers.begin(), readers.end()) - readers.begin();
    bytes += dag.output_bytes(v) * static_cast<double>(count);
  }
  return bytes;
}

double load_imbalance(const Dag& dag, Part parts, const Placement& placement) {
  if (dag.total_time_us() == 0) return 1;
  return busiest_us(dag, parts, placement) / (dag.total_time_us() / parts);
}

Schedule ready_schedule(const PartitionTask& task, const PartitionAnswer& answer) {
  if (answer.ready) return *answer.ready;
  return ReadyOrder(task.dag, task.link, task.parts).schedule(answer.placement);
}

Schedule own_schedule(const PartitionTask& task, const PartitionAnswer& answer) {
  return answer.schedule ? *answer.schedule : ready_schedule(task, answer);
}

PartitionReport report_partition(const PartitionTask& task, std::string method,
                                 const PartitionAnswer& answer) {
  PartitionReport report;
  report.method = std::move(method);
  report.parts = task.parts;
  const Schedule ready = ready_schedule(task, answer);
  const Schedule& own = answer.schedule ? *answer.schedule : ready;
  report.ready_order_makespan_us = ready.makespan_us;
  report.schedule_makespan_us = own.makespan_us;
  report.makespan_us = !task.memory_bytes || fit(task, emulate_memory(task.dag, task.link, task.parts,
                                                                      answer.placement, ready))
                           ? ready.makespan_us
                           : own.makespan_us;
  report.lower_bound_us = lower_bound_us(task.dag, task.parts);
  report.cut_bytes = cut_bytes(task.dag, answer.placement);
  report.load_imbalance = load_imbalance(task.dag, task.parts, answer.placement);
  MemoryUse use = emulate_memory(task.dag, task.link, task.parts, answer.placement, own);
  report.fits = fit(task, use);
  report.peak_memory_bytes = std::move(use.peak_bytes);
  report.assignment = answer.placement;
  return report;
}

}  // namespace convoy::partition
