// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// What any of a plan's programs leaves out (Role::repeats); nullptr: nothing is left out.
const RepeatedTasks* left_out(const Plan& plan);

/// Whether all that is left out is one repeated task of every program, in which no device waits for another:
/// the accumulation of gradients. In a replay, the last listed task then stands for those that are left out.
bool leaves_only_computing_out(const Plan& plan);

/// By communication: for how many communications of a step (or of Plan::steps) it stands, which are itself
/// and those of the periods that its senders leave out. The sum over the communications of a pattern is their
/// number in a step.
std::vector<double> times_of_communications(const Plan& plan);

/// The bytes that the communications of each pattern carry in a step. Those of one pattern in an endless run
/// are equal.
std::vector<double> step_bytes(const Plan& plan);

/// An operation's name in a task that has it: with the number of the task's micro-batch.
std::string name_of(const Task& task, const PlanOp& op);

/// The same step with this many more periods listed in its programs, or with all of them if fewer are left
/// out. The tasks and messages have the names that they would have had, but other numbers in the lists of the
/// plan.
Plan with_more_listed(Plan plan, std::uint64_t periods);

/// The same step with nothing left out: all periods, and a round for each repetition in which shares rotate
/// (Round::rotation).
Plan with_all_listed(Plan plan);
/// Whether nothing is left out.
bool lists_all(const Plan& plan);

}  // namespace convoy::plans
