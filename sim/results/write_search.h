// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/results/result.h"

namespace convoy::inline results {

/// For people: what the searches over strategies (`kind: auto`) among the runs found, the first candidates of
/// each with the reason why they are not the best. Of many searches only the first line. "" without any.
std::string search_tables(const std::vector<RunResult>& runs);

/// "run 3: auto, step_time: 24 candidates, 9 simulated, 13 ruled out by bounds".
std::string search_headline(const RunResult& run);

/// What a candidate's simulation found, or what it could be at best: "12.3 ms", ">= 15.0 ms".
std::string found_text(const std::string& objective, const CandidateResult& candidate);

}  // namespace convoy::results
