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

namespace convoy::inline search {

enum class CandidateState : std::uint8_t {
  cannot_run,
  failed,
  open,  ///< not planned yet
  planned,
  too_large,
  pruned,
  unknown,
  simulated
};

/// What is known of a candidate so far.
struct Candidate {
  CandidateState state = CandidateState::cannot_run;
  std::string message;   ///< why it cannot run, or what failed
  bool planned = false;  ///< else the assessment is what the cost table says, where that says anything
  Assessment assessment;
  Rank bound;
  RunResult result;  ///< of a simulated one, without its devices and links
  Rank rank;
};

/// All candidates, best first, each with a sentence: simulated ones, those that were not, those that do not
/// fit, those that cannot run.
/// @param candidates in the order of spec.candidates; `best` is one that was simulated
/// @param spreads of steps on this cluster, for ties
SearchSummary summarise(const SearchSpec& spec, const std::vector<Candidate>& candidates, std::size_t best,
                        std::int64_t simulated, const StepSpreads& spreads);

}  // namespace convoy::search
