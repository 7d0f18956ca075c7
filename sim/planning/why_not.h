// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// A candidate on the front, with what it offers instead of the choice.
CandidateResultOfPlan on_front(const Planner& planner, std::size_t candidate, const Scenario& scenario,
                               std::size_t choice);

/// A candidate that is beaten by the choice, with the reason.
CandidateResultOfPlan runner_up(const Planner& planner, std::size_t candidate, const Scenario& scenario,
                                const CandidateResultOfPlan& choice);

/// What became of so many candidates that were left out for a reason of PlanAnswer::pruned: "do not fit in
/// memory".
const char* meaning_of(const std::string& reason, std::int64_t count);

/// A limit of money: "609.37 USD", "0.034 USD".
std::string limit_text(double usd);

}  // namespace convoy::planning
