// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/run/doubts.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// The results of a run, computed from what its replay measured (definitions: docs/results.md), without its id and
/// point.
/// @param ranges of the run's step, by the doubts that are simulated (PreparedRun::doubts): they widen its
/// interval
/// @throws std::logic_error if the parts of a step are longer than the step: a mistake of the replay
RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed,
                   const std::vector<StepRange>& ranges = {});

/// Where a peak may be: tensors are counted, and the additional memory of allocators and libraries is not known better
/// than `memory_factor`.
IntervalResult::Range memory_range(double peak_memory_bytes, Framework framework);

/// Widens the interval of a run to include that of the same run on another network that it may have.
void widen_interval(RunResult& result, const RunResult& other);

/// USD per hour of all hosts, including dedicated servers; nothing if a price is unknown.
std::optional<double> price_usd_per_h(const Machine& machine);

}  // namespace convoy::runs
