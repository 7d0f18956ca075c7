// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "sim/results/result.h"
#include "sim/run/simulate.h"

namespace convoy {

/// Fills result.counterfactuals: the same run on a machine or with an algorithm other than its own, each simulated in
/// a process of its own. In order: links twice as fast, no latency, devices twice as fast, the best all-reduce
/// algorithm (where the strategy has one), one more server (where the cluster says how many it has). A latency
/// bottleneck is told the algorithm that mends it, and an `algorithm: auto` which one it came to.
/// @param result of the point, simulated @param jobs processes at a time @pre SIGPIPE is ignored
void explain(Preparer& preparer, const Point& point, std::size_t jobs, RunResult& result);

}  // namespace convoy
