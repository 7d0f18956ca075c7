// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/partition/dag.h"
#include "strategies/partition/schedule.h"

namespace convoy::inline partition {

/// For methods that place nodes one by one: each unit (Dag::unit) goes to the part where most of its own work and of
/// the messages it exchanges are.
/// @param message_us by node: time that its output takes to another part (message_costs)
void collocate(const Dag& dag, const std::vector<double>& message_us, Part parts, Placement& placement);

}  // namespace convoy::partition
