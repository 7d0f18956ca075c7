// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"

namespace convoy {

/// What would help each run and how much (`--explain`), for people; empty where no run has counterfactuals.
std::string explanation(const Results& results);

/// "12.3 ms (8.1 %) less", "no gain": of a counterfactual's step against the run's.
std::string gain_text(const Counterfactual& counterfactual, const RunResult& run);
/// "0.12 USD less", "" where prices are not known.
std::string gain_usd_text(const Counterfactual& counterfactual);

}  // namespace convoy
