// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// What is known of a phase before it has a place in time.
struct PhaseTimes {
  std::int64_t at_step = 0;  ///< when it is asked for
  double step_time_s = 0;
  double preparation_s = 0;  ///< before it, while the phase before goes on
  double pause_s = 0;        ///< before it, without progress
};

struct PhaseStart {
  std::int64_t step = 0;  ///< the phase's first
  double start_s = 0;     ///< when that begins, after the pause
};

/// Puts phases one after the other. A change is asked for at the end of a step; it is seen to once the one
/// before is through. The old devices then make as many whole steps as the preparation lasts, the last of
/// them perhaps longer, and the pause follows.
std::vector<PhaseStart> lay_out(const std::vector<PhaseTimes>& phases);

/// When so many steps have been done, pauses included. The last phase goes on as long as it takes.
double time_of_steps(const std::vector<PhaseTimes>& phases, const std::vector<PhaseStart>& starts,
                     double steps);

/// Replays the phases before the last and the messages of the changes, and adds to the run's results its
/// phases and reconfigurations. Its memory becomes that of the fullest phase; epoch_time_s and
/// cost_usd_per_epoch those of the first epoch, with the phases and pauses that fall into it.
/// @param last what the replay of the last phase, run.plan on run.machine, measured
/// @param with_trace draws the phases, what lies between them, and of each phase the first step
void add_timeline(const PreparedRun& run, const ReplayResult& last, bool with_trace, RunOutput& output);

}  // namespace convoy::runs
