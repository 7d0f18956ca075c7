// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// What is left out of a plan's programs (Role::repeats), of any of them; nullptr: nothing.
const RepeatedTasks* left_out(const Plan& plan);

/// Whether all that is left out is one task of every program, again and again, in which nobody waits for anybody:
/// gradients that are accumulated. A replay then lets the last listed one stand for those that are left out.
bool leaves_only_computing_out(const Plan& plan);

/// By communication: how many of a step (or of Plan::steps) it stands for, itself and those of the periods that
/// its senders leave out. The sum over the communications of a pattern is how many of them a step has.
std::vector<double> times_of_communications(const Plan& plan);

/// The same step with so many more periods in its programs, or with all where fewer are left out. Their tasks
/// and messages have the names that they would have had, but other numbers in the lists of the plan.
Plan with_more_listed(Plan plan, std::uint64_t periods);

/// The same step with nothing left out: all periods, and a round for each repetition in which shares rotate
/// (Round::rotation).
Plan with_all_listed(Plan plan);
/// Whether nothing is left out.
bool lists_all(const Plan& plan);

}  // namespace convoy::plans
