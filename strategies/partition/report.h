// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/partition/memory.h"
#include "strategies/partition/method.h"

namespace convoy::inline partition {

/// What a placement is worth.
struct PartitionReport {
  std::string method;
  Part parts = 1;
  /// Of the placement in the order of readiness (ReadyOrder) where that keeps within the task's memory_bytes,
  /// and of the method's own order where it does not.
  double makespan_us = 0;
  double ready_order_makespan_us = 0;  ///< in the order of readiness, whatever memory that takes
  double schedule_makespan_us = 0;     ///< in the method's own order
  double lower_bound_us = 0;
  double cut_bytes = 0;                   ///< each output once for every other part that reads it
  double load_imbalance = 1;              ///< work of the busiest part / mean; 1 where there is no work
  std::vector<double> peak_memory_bytes;  ///< of each part, in the method's own order
  bool fits = true;                       ///< every peak within the task's memory_bytes
  double partition_s = 0;                 ///< time that the method took; the caller measures it
  std::vector<Part> assignment;           ///< part of each node
};
PartitionReport report_partition(const PartitionTask& task, std::string method,
                                 const PartitionAnswer& answer);

/// The answer's placement in the order of readiness.
Schedule ready_schedule(const PartitionTask& task, const PartitionAnswer& answer);

/// The method's own schedule, or that in the order of readiness where it has none.
Schedule own_schedule(const PartitionTask& task, const PartitionAnswer& answer);

double cut_bytes(const Dag& dag, const Placement& placement);
double load_imbalance(const Dag& dag, Part parts, const Placement& placement);

}  // namespace convoy::partition
