// SPDX-License-Identifier: MIT
#include "strategies/partition/insertion_schedule.h"

#include <algorithm>
#include <limits>

namespace convoy::inline partition {

InsertionSchedule::InsertionSchedule(const PartitionTask& task, const std::vector<double>& message)
    : dag_(task.dag),
      message_(message),
      answer_{Placement(task.dag.size()), Schedule{}},
      gaps_(task.parts),
      unit_part_(dag_.unit_count(), none) {
  answer_.schedule->start_us.resize(dag_.size());
  answer_.schedule->finish_us.resize(dag_.size());
}

void InsertionSchedule::place(NodeId operation, Part parts) {
  Schedule& schedule = *answer_.schedule;
  const double time_us = dag_.time_us(operation);
  const InputsReady ready = find_ready(dag_, operation, answer_.placement, schedule.finish_us, message_);
  Part& fixed = unit_part_[dag_.unit(operation)];
  Part best = 0;
  double best_start = std::numeric_limits<double>::infinity();
  for (Part part = 0; part < gaps_.size(); ++part) {
    if (fixed == none ? part >= parts : part != fixed) continue;
    if (ready.on_us(part) >= best_start) continue;
    const double start = gaps_[part].earliest(ready.on_us(part), time_us);
    if (start < best_start) best = part, best_start = start;
  }
  const double finish = best_start + time_us;
  fixed = best;
  gaps_[best].take(best_start, finish);
  answer_.placement[operation] = best;
  schedule.start_us[operation] = best_start;
  schedule.finish_us[operation] = finish;
  schedule.makespan_us = std::max(schedule.makespan_us, finish);
}

}  // namespace convoy::partition
