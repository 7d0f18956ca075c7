// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"
#include "sim/run/search/assess.h"
#include "sim/run/search/search_spec.h"

namespace convoy {

/// "12 % slower: exposed communication 120 ms more; n0's NIC is busy 97 % of the step": why a simulated
/// candidate is not the best one. Times are of as many images as the best one's step has.
std::string why_beaten(Objective objective, const RunResult& loser, const RunResult& best);

/// "cannot beat the best: at least 210 ms a step, ...", and where the objective is another than time, that.
std::string why_pruned(Objective objective, const Assessment& pruned, const RunResult& best);

/// What a step cannot go below and why, with its images where the best one's step has others.
std::string bound_text(const Assessment& assessment, const RunResult& best);

/// "does not fit: 18.2 GiB of 16.0 GiB on n0"
std::string why_too_large(const Assessment& assessment);

/// Whether what ranks at `rank` is no farther from the best than the 80 % interval of the best one's step (of
/// its memory, where that is the objective) reaches. False where the best has no interval.
bool is_tie(Objective objective, const Rank& rank, const RunResult& best);

/// The objective's value as results show it, from what ranks are compared by.
/// @param images of the best candidate's step
double shown_value(Objective objective, double rank_value, double images);

}  // namespace convoy
