// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/replay/replay.h"
#include "sim/results/result.h"
#include "sim/results/write_trace.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// The same run with all tasks in its plans (RepeatedTasks), for those who read them one by one.
PreparedRun with_every_task(PreparedRun run);

/// The output of one run.
struct RunOutput {
  RunResult result;                 ///< without the run's id and point
  std::vector<TraceProcess> trace;  ///< if it was asked for
};

/// Replays a prepared point. The result is the same to the last bit, whatever the process has replayed
/// before, except with NetworkModel::simgrid, whose clock continues (sim/replay/engine.h).
RunOutput simulate(const PreparedRun& run, bool with_trace);

/// The two halves of it: the replay of a run's step, and the output with such a replay, whose timelines only a trace
/// and a run in phases need. A trace has the tasks that the run's plan lists.
ReplayResult replay_of(const PreparedRun& run);
RunOutput output_of(const PreparedRun& run, const ReplayResult& replayed, bool with_trace);

}  // namespace convoy::runs
