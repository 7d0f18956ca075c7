// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// What is known about a phase before it has a place in time.
struct PhaseTimes {
  std::int64_t at_step = 0;  ///< when it is requested
  double step_time_s = 0;
  double preparation_s = 0;  ///< before it, while the phase before goes on
  double pause_s = 0;        ///< before it, without progress
};

struct PhaseStart {
  std::int64_t step = 0;  ///< the phase's first
  double start_s = 0;     ///< when that begins, after the pause
};

/// Puts phases one after the other. A change is requested at the end of a step, and takes effect once the
/// previous one is finished. The old devices then make as many whole steps as the preparation lasts (the last
/// of them may last longer), and then the pause follows.
std::vector<PhaseStart> lay_out(const std::vector<PhaseTimes>& phases);

/// Where the phases of a run begin. @pre it has phases
std::vector<PhaseStart> starts_of_phases(const PreparedRun& run);

/// The time at which this many steps have been done, including pauses. The last phase lasts as long as
/// necessary.
double time_of_steps(const std::vector<PhaseTimes>& phases, const std::vector<PhaseStart>& starts,
                     double steps);

/// Replays the phases before the last and the messages of the changes, and adds phases and reconfigurations
/// to the results of the run. Its memory becomes that of the fullest phase; epoch_time_s and
/// cost_usd_per_epoch become those of the first epoch, with the phases and pauses that fall into it.
/// @param last the replay of the last phase, run.plan on run.machine
/// @param with_trace draws the phases, what lies between them, and the first step of each phase
void add_timeline(const PreparedRun& run, const ReplayResult& last, bool with_trace, RunOutput& output);

/// A stretch of a run in which one step is repeated, or in which the messages of a change are sent once.
struct RunStretch {
  double start_s = 0, end_s = 0;  ///< the last stretch of a run has no end: infinity
  const Plan& plan;
  const Machine& machine;
  const ReplayResult& replayed;  ///< of one step
};

/// Calls `visit` with the stretches of a run in their order. Between them nothing happens: devices wait for what a
/// change takes beside its messages.
/// @param last the replay of the last phase, or of a run without phases
void for_each_stretch(const PreparedRun& run, const ReplayResult& last,
                      const std::function<void(const RunStretch&)>& visit);

}  // namespace convoy::runs
