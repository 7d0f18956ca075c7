// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/assess.h"
#include "sim/run/search/search_spec.h"
#include "sim/search/trial_state.h"

namespace convoy::inline search {

/// What is known about a candidate so far.
struct CandidateRecord {
  TrialState state = TrialState::cannot_run;
  std::string message;   ///< why it cannot run, or what failed
  bool ruled_out = false;  ///< not simulated because it cannot beat the best one; else the budget was spent
  bool planned = false;    ///< if false, the assessment is that of the cost table, if it has one
  Assessment assessment;
  Rank bound;
  RunResult result;  ///< of a simulated candidate, without devices and links
  Rank rank;
};

/// All candidates, best first, each with a sentence: first simulated ones, then those that were not
/// simulated, those that do not fit, and those that cannot run.
/// @param candidates in the order of spec.candidates; `best` is one that was simulated
/// @param spreads of steps on this cluster, for ties
SearchSummary summarise(const SearchSpec& spec, const std::vector<CandidateRecord>& candidates,
                        std::size_t best, std::int64_t simulated, const StepSpreads& spreads);

}  // namespace convoy::search
