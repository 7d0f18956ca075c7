// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// For each pattern: whether its ranks go on one by one (a send/receive pattern, or a collective replayed as
/// chunks) or all ranks of a group in step (fluid). `automatic` becomes fluid where that is the same: every
/// rank has as many messages in every round, all messages of a round are equal and get equally much of their
/// links, and nothing else is on these links at the time; and where there would be more than a million
/// messages, counted before folding.
/// @throws std::logic_error when communications of one pattern ask for different fidelities.
std::vector<bool> ranks_go_one_by_one(const Plan& plan, const Machine& machine, const FlowTable& table);

}  // namespace convoy::replays
