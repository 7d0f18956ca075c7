// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/cli/commands.h"
#include "sim/prove/prove.h"
#include "sim/run/preparer.h"
#include "sim/run/sweep.h"

namespace convoy::inline cli {

/// Of an experiment's points: done where all are proved; check_failed where one is refuted; else bad_input,
/// where the plan of one is not covered by the rules.
Exit exit_for(const std::vector<Proof::Outcome>& outcomes);

struct ProvedExperiment {
  std::vector<Proof::Outcome> outcomes;  ///< by point
  SweepCheck check;                      ///< of the points that have a plan: their warnings
};

/// `convoy check FILE --prove`: writes a line for each point, one after the other. @throws InputError
ProvedExperiment prove_experiment(Preparer& preparer);

}  // namespace convoy::cli
