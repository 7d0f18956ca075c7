// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "strategies/strategy.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// The algorithms that a strategy's `algorithm: auto` chose for its collectives, the one with the most bytes
/// first, each listed once. Empty if the strategy has no `algorithm: auto`, or nothing to sum.
std::vector<std::string> chosen_algorithms(const Strategy& strategy, const Plan& plan,
                                           const Machine& machine);

}  // namespace convoy::runs
