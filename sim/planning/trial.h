// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/search/trial_state.h"

namespace convoy::inline planning {

/// What is known of a setup's training step. It grows: first bounds, then a plan, then a simulation. There may be a million of
/// them, which every question looks at: what few have is in TrialDetails.
struct Trial {
  TrialState state = TrialState::open;
  bool planned = false;             ///< a plan was made, though it may not fit
  double step_s = 0, energy_j = 0;  ///< of a step: of a simulated one exactly, else no simulation gives less
  double input_step_s = 0;  ///< of step_s, what the hosts need for the images of a step, to the last digits
  double peak_memory_bytes = 0;  ///< of the fullest device, from the plan on
};

/// What was found out of a setup when it was planned or simulated.
struct TrialDetails {
  double bound_step_s = 0, bound_energy_j = 0;  ///< of the plan, where simulated
  bool in_full = false;                         ///< Trials::simulate_in_full; the next four are known then
  double step_low = 1, step_high = 1;           ///< the interval of Trial::step_s, as factors of it
  bool own_interval = false;  ///< it is that of the run; else that of any run (step_interval)
  std::string label;          ///< of the strategy, with the algorithms that it chose
  std::string bottleneck;     ///< a sentence, where simulated
  std::string message;        ///< why its plan cannot run, or what failed
};

}  // namespace convoy::planning
