// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/assess.h"
#include "sim/run/search/search_spec.h"

namespace convoy::inline search {

/// "12 % slower: exposed communication 120 ms more; n0's NIC is busy 97 % of the step": why a simulated
/// candidate is not the best one. Times are of as many images as the best one's step has.
std::string why_beaten(Objective objective, const RunResult& loser, const RunResult& best);

/// "cannot beat the best: at least 210 ms a step, ...", and where the objective is another than time, that.
std::string why_pruned(Objective objective, const Assessment& pruned, const RunResult& best);

/// What a step cannot go below and why, with its images where the best one's step has others.
std::string bound_text(const Assessment& assessment, const RunResult& best);

/// "does not fit: 18.2 GiB of 16.0 GiB on n0"
std::string why_too_large(const Assessment& assessment);

/// Whether two candidates are closer than the 80 % interval of their difference reaches. They run on the same
/// devices and network with the same software, so that an error of the cost model makes both longer or both
/// shorter. With the spreads of the step (evaluate.h) and times of as many images, the difference may be off
/// by
///   sqrt((e_compute |C - C'|)^2 + (e_comm |K - K'|)^2 + e_devices^2 (T^2 + T'^2)),  e = exp(q_80 spread) - 1
/// with computing C, exposed communication K and the step T of each; only the last part, in which steps of
/// several devices differ from their parts, is each candidate's own (0 of one that sends nothing). Energy and
/// cost are as far apart as the steps that cause them may be; memory as the best one's own interval reaches.
/// False where the best has no interval: then everything is exact.
bool is_tie(Objective objective, const RunResult& other, const RunResult& best, const StepSpreads& spreads);

/// The same of a candidate of which only a bound is known: whether it is a tie where it has this bound and
/// computes as long as the best.
bool may_be_tie(Objective objective, const Rank& bound, const RunResult& best, const StepSpreads& spreads);

/// The objective's value as results show it, from what ranks are compared by.
/// @param images of the best candidate's step
double shown_value(Objective objective, double rank_value, double images);

}  // namespace convoy::search
