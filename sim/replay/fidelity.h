// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// For each pattern: whether its ranks proceed one by one (a send/receive pattern, or a collective that is
/// replayed in chunks), or all ranks of a group proceed in step (fluid). `automatic` becomes fluid if the
/// result is the same: every rank has the same number of messages in every round, all messages of a round are
/// equal and get the same rates on their links, and nothing else is on these links at the time. It also
/// becomes fluid if there would be more than a million messages, counted before folding.
/// @throws std::logic_error if communications of one pattern ask for different fidelities.
std::vector<bool> ranks_go_one_by_one(const Plan& plan, const Machine& machine, const FlowTable& table);

}  // namespace convoy::replays
