// SPDX-License-Identifier: MIT
#pragma once

#include "sim/cli/commands.h"
#include "sim/run/experiment.h"

namespace convoy::inline cli {

/// `convoy check FILE --prove`: a line for each point. @return done where all are proved; check_failed where
/// one is refuted; else bad_input, where the plan of one is not covered by the rules
/// @throws InputError
Exit prove_experiment(const Experiment& experiment);

}  // namespace convoy::cli
