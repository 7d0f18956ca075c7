// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/replay/replay.h"
#include "sim/results/write_trace.h"

namespace convoy::inline runs {

/// The step as drawn: one process per host, one thread per stream of each of its devices and of the host
/// itself. On machines with more than 64 devices, only one of each class of equal devices or hosts.
std::vector<TraceProcess> trace_of(const Plan& plan, const Machine& machine, const CostModel& cost,
                                   const ReplayResult& replayed);

/// Appends `more`, shifted by `after_s`, to the processes and threads of the same names.
void append(std::vector<TraceProcess>& trace, std::vector<TraceProcess> more, double after_s);

}  // namespace convoy::runs
