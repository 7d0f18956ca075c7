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

/// By thing, what tells it apart before its neighbours do: its kind, and what it is by itself.
std::vector<Colour> first_colours(const Plan& plan, const Machine& machine, const FlowTable& table,
                                  const ThingNumbers& numbers, const Disturbances& disturbances);

}  // namespace convoy::replays
