// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// What would help each run and how much (`--explain`), for people; empty where no run has counterfactuals.
std::string explanation(const Results& results);

/// What repetitions of the runs with what varies came to (`variability:`), a line a run; empty without any.
std::string what_varies(const Results& results);
/// "a step takes 95.2 ms on average (90.1 ms to 101 ms at 80 %), 5.3 % more than undisturbed; an epoch ..."
std::string variability_text(const RunResult& run);

/// "12.3 ms (8.1 %) less", "no gain": of a counterfactual's step against the run's.
std::string gain_text(const Counterfactual& counterfactual, const RunResult& run);
/// "0.12 USD less", "" where prices are not known.
std::string gain_usd_text(const Counterfactual& counterfactual);

}  // namespace convoy::results
