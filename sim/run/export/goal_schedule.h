// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// Writes a plan as a schedule of GOAL, whose text LogGOPSim's txt2bin reads (docs/tasks.md): what each rank
/// computes, in nanoseconds, and every message it sends and receives. Grammar: T. Hoefler, C. Siebert and
/// A. Lumsdaine, Group Operation Assembly Language, ICPP 2009, as in https://github.com/spcl/LogGOPSim,
/// src/LogGOPSim/txt2bin.re.
/// @pre the plan has no service
void write_goal_schedule(const Plan& plan, const Machine& machine, const CostModel& cost, std::ostream& out);

}  // namespace convoy::runs
