// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/assess.h"
#include "sim/run/search/search_spec.h"

namespace convoy::inline search {

/// "12 % slower: exposed communication 120 ms more; n0's NIC is busy 97 % of the step": why a simulated
/// candidate is not the best one. Times are for as many images as the best one's step has.
std::string why_beaten(Objective objective, const RunResult& loser, const RunResult& best);

/// "cannot beat the best: at least 210 ms a step, ...", and if the objective is not time, the bound of the
/// objective.
std::string why_pruned(Objective objective, const Assessment& pruned, const RunResult& best);

/// The lower bound of a step and its reason, with the number of images if it differs from that of the best
/// step.
std::string bound_text(const Assessment& assessment, const RunResult& best);

/// "does not fit: 18.2 GiB of 16.0 GiB on n0"
std::string why_too_large(const Assessment& assessment);

/// Whether two candidates are closer than the 80 % interval of their difference. They run on the same devices
/// and network with the same software, so an error of the cost model makes both longer or both shorter. With
/// the spreads of the step (evaluate.h), and times for the same number of images, the error of the difference
/// is up to
///   sqrt((e_compute |C - C'|)^2 + (e_comm |K - K'|)^2 + e_devices^2 (T^2 + T'^2)),  e = exp(q_80 spread) - 1
/// with computing C, exposed communication K and the step T of each. Only the last part, by which steps of
/// several devices differ from their parts, is independent for each candidate (0 for one that sends nothing).
/// Energy and cost may differ as much as the steps that cause them; memory as much as the best one's own
/// interval. False if the best has no interval: then everything is exact.
bool is_tie(Objective objective, const RunResult& other, const RunResult& best, const StepSpreads& spreads);

/// The same for a candidate of which only a bound is known: whether it would be a tie with this bound and as
/// much computing as the best.
bool may_be_tie(Objective objective, const Rank& bound, const RunResult& best, const StepSpreads& spreads);

/// The value of the objective as results show it, computed from the value by which candidates are ranked.
/// @param images of the best candidate's step
double shown_value(Objective objective, double rank_value, double images);

}  // namespace convoy::search
