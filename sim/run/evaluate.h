// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// The results of a run, computed from what its replay measured (definitions: docs/results.md).
/// @throws std::logic_error if the parts of a step are longer than the step: a mistake of the replay
RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed);

/// Widens the interval of a run to include that of the same run on another network that it may have.
void widen_interval(RunResult& result, const RunResult& other);

/// The parts of a run's devices and software that rest on no published figure, one sentence each.
std::vector<std::string> warnings_of(const PreparedRun& run);

/// USD per hour of all hosts, including dedicated servers; nothing if a price is unknown.
std::optional<double> price_usd_per_h(const Machine& machine);

/// Standard deviations of the logarithms of the parts of a step (docs/cost_model.md#intervals); 0 if nothing
/// is open.
struct StepSpreads {
  double compute = 0;
  double comm = 0;     ///< of every message
  double devices = 0;  ///< of a step of several devices, in addition to these
  bool all_exact() const { return compute == 0 && comm == 0 && devices == 0; }
};
/// @param images per step, of all devices
StepSpreads step_spreads(const PreparedRun& run, double images);

}  // namespace convoy::runs
