// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

// What runs are in words, which are the same in the table and in the report.

/// What the runs were predicted for, including defaults, and what that rests on: a line of software
/// ("software: pytorch, eager, nchw, fp32; transport nccl-tcp; input synthetic"; several values if runs
/// differ), and a line for each of their warnings.
std::vector<std::string> assumptions(const SweepResults& results);

/// How far a run's throughput may be off, at the level of its interval: "± 17 %", "-15 +30 %" where its sides are unlike;
/// empty if it has no interval.
std::string doubt_text(const RunFigures& run);

/// What a run waits for in a few words: "compute 98 %", "latency 91 %", "n0.nic 94 %".
std::string bottleneck_text(const std::string& kind, const std::string& name, double utilization);
std::string bottleneck_text(const RunFigures& run);

}  // namespace convoy::results
