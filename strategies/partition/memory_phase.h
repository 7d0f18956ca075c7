// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/method.h"

namespace convoy::inline partition {

/// Makes a placement fit into `task.memory_bytes` a part (ParDNN, memory phase): while a part overflows, it
/// hands the cheapest of what it holds at its peak to the emptiest part. Where that does not end well, the
/// graph is cut anew into blocks of equal memory that keep an operation with its oldest input. What fits is
/// refined within the limit. Where nothing fits, the placement whose fullest part overflows least.
/// A placement that fits is left as it is.
Placement fit_memory(const PartitionTask& task, ReadyOrder& judge, Placement placement);

/// The published heuristic of it alone: hands over until nothing overflows, or no longer gets better.
Placement move_until_it_fits(const PartitionTask& task, ReadyOrder& judge, Placement placement);

/// A placement's schedule: the shortest of schedules_of whose peaks are within the limit; where none is, the
/// one whose fullest part holds least. Without a limit the shortest of all. @param judge of the task;
/// overwritten
Schedule schedule_within_memory(const PartitionTask& task, ReadyOrder& judge, const Placement& placement);

}  // namespace convoy::partition
