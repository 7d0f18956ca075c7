// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string_view>

#include "sim/replay/replay.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// Why the tasks of such a run cannot be written; "" if they can.
std::string_view refuses_tasks(const PreparedRun& run);

/// Writes a plan as it was replayed, every endpoint and message listed, and what the replay measured:
/// docs/tasks.md, schema convoy.tasks/1. If the plan says what its tasks mean, what they read and write is written, too.
/// The text is written as it is made and never in memory as a whole.
/// @param graph that the plan trains  @pre the plan has no service
void write_tasks(const Plan& plan, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                 const ReplayResult& replayed, std::ostream& out);

/// Replays a prepared point and writes its tasks. @pre refuses_tasks(run) is ""
void write_tasks(const PreparedRun& run, std::ostream& out);

}  // namespace convoy::runs
