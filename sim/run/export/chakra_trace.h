// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// For before anything is computed. @throws OutputError: it cannot be made, or holds other files than those
/// that write_chakra_traces writes
void check_chakra_folder(const std::string& path);

/// Writes a plan as execution traces of Chakra (docs/tasks.md; chakra_et.proto): trace.R.et of each rank R,
/// and comm_groups.json, the ranks of each process group by its name. Files of former traces are replaced,
/// and those of further ranks removed.
/// @pre the plan has no service  @throws OutputError
void write_chakra_traces(const Plan& plan, const Machine& machine, const CostModel& cost,
                         const std::string& path);

}  // namespace convoy::runs
