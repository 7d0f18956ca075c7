// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// For people: what the searches over strategies (`kind: auto`) among the runs found, with the first
/// candidates of each and the reasons why they are not the best. If there are many searches, only the first
/// line of each. "" if there are none.
std::string search_tables(const SweepResults& results);

/// "run 3: auto, step_time: 24 candidates, 9 simulated, 13 ruled out by bounds".
std::string search_headline(const RunResult& run);

/// The value that a candidate's simulation found, or the best value it could have: "12.3 ms", ">= 15.0 ms".
std::string found_text(const std::string& objective, const CandidateResult& candidate);

}  // namespace convoy::results
