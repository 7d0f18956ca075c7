// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/cli/commands.h"
#include "sim/results/monitor.h"
#include "sim/run/preparer.h"

namespace convoy::inline cli {

/// Refuses options of `--monitor` that cannot be, before anything is simulated. @throws InputError
void check_monitor(const RunArguments& arguments);

/// What monitoring reports of every run of `results`, each of which is replayed once more. Of a search the best
/// candidate.
/// @throws InputError: that would be too many lines
std::vector<RunMonitor> monitor_runs(Preparer& preparer, const SweepResults& results,
                                     const RunArguments& arguments);

}  // namespace convoy::cli
