// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// What would help each run and how much (`--explain`), for people; empty if no run has counterfactuals.
std::string explanation(const SweepResults& results);

/// The result of repeating the runs with what varies (`variability:`), one line per run; empty if there is
/// none.
std::string what_varies(const SweepResults& results);
/// "a step takes 95.2 ms on average (90.1 ms to 101 ms at 80 %), 5.3 % more than undisturbed; an epoch ..."
std::string variability_text(const RunResult& run);

/// "12.3 ms (8.1 %) less", "no gain": the step of a counterfactual compared with that of the run; "for as
/// many images" where it has others.
std::string gain_text(const Counterfactual& counterfactual, const RunResult& run);
/// "0.12 USD less", or "" if prices are not known.
std::string gain_usd_text(const Counterfactual& counterfactual, const RunResult& run);
/// "1.2 GiB more of memory, does not fit"; "" where the peak stays as it is.
std::string gain_memory_text(const Counterfactual& counterfactual, const RunResult& run);

}  // namespace convoy::results
