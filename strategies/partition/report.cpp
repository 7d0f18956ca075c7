// SPDX-License-Identifier: MIT
#include "strategies/partition/report.h"

#include <algorithm>

namespace convoy {

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
  std::vector<double> work(parts);
  for (NodeId v = 0; v < dag.size(); ++v) work[placement[v]] += dag.time_us(v);
  if (dag.total_time_us() == 0) return 1;
  return *std::max_element(work.begin(), work.end()) / (dag.total_time_us() / parts);
}

Schedule own_schedule(const PartitionTask& task, const PartitionAnswer& answer) {
  if (answer.schedule) return *answer.schedule;
  return ReadyOrder(task.dag, task.link, task.parts).schedule(answer.placement);
}

PartitionReport report_partition(const PartitionTask& task, std::string method,
                                 const PartitionAnswer& answer) {
  PartitionReport report;
  report.method = std::move(method);
  report.parts = task.parts;
  report.makespan_us = ReadyOrder(task.dag, task.link, task.parts).makespan_us(answer.placement);
  const Schedule own = own_schedule(task, answer);
  report.schedule_makespan_us = own.makespan_us;
  report.lower_bound_us = lower_bound_us(task.dag, task.parts);
  report.cut_bytes = cut_bytes(task.dag, answer.placement);
  report.load_imbalance = load_imbalance(task.dag, task.parts, answer.placement);
  report.peak_memory_bytes =
      emulate_memory(task.dag, task.link, task.parts, answer.placement, own).peak_bytes;
  report.fits =
      !task.memory_bytes || std::all_of(report.peak_memory_bytes.begin(), report.peak_memory_bytes.end(),
                                        [&](double peak) { return peak <= *task.memory_bytes; });
  report.assignment = answer.placement;
  return report;
}

}  // namespace convoy
