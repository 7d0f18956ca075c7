// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/colours.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/flows.h"
#include "sim/replay/refine.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// For each object, what distinguishes it before its neighbours are considered: its kind, and its own
/// properties.
std::vector<Colour> first_colours(const Plan& plan, const Machine& machine, const FlowTable& table,
                                  const NodeIds& numbers, const Disturbances& disturbances);

}  // namespace convoy::replays
