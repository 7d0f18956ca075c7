// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// The results of a run from what its replay measured (definitions: docs/results.md).
/// @throws std::logic_error where the parts of a step are longer than the step: a mistake of the replay
RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed);

/// Makes the interval of a run reach over that of the same run on another network, which it may have been.
void widen_interval(RunResult& result, const RunResult& other);

/// What of a run's devices and software rests on no published figure, a sentence each.
std::vector<std::string> warnings_of(const PreparedRun& run);

/// USD of an hour of all hosts, dedicated servers too; nothing where a price is unknown.
std::optional<double> price_usd_per_h(const Machine& machine);

/// Standard deviations of the logarithms of what a step is made of (docs/cost_model.md#intervals); 0 where
/// nothing is open.
struct StepSpreads {
  double compute = 0;
  double comm = 0;     ///< of every message
  double devices = 0;  ///< of a step of several devices, beside these
  bool all_exact() const { return compute == 0 && comm == 0 && devices == 0; }
};
/// @param images of a step, of all devices
StepSpreads step_spreads(const PreparedRun& run, double images);

}  // namespace convoy::runs
