// SPDX-License-Identifier: MIT
#include <algorithm>

#include "strategies/partition/report.h"

namespace convoy::inline partition {

PartitionAnswer partition_best(const PartitionTask& task) {
  PartitionAnswer best{Placement(task.dag.size()), std::nullopt};  // one part alone
  PartitionReport of_best = report_partition(task, "", best);
  for (const PartitionMethod& method : partition_methods()) {
    if (method.run == &partition_best || !method.available()) continue;
    PartitionAnswer answer = method.run(task);
    PartitionReport report = report_partition(task, "", answer);
    const bool better = report.fits != of_best.fits ? report.fits : report.makespan_us < of_best.makespan_us;
    if (better) best = std::move(answer), of_best = std::move(report);
  }
  return best;
}

}  // namespace convoy::partition
