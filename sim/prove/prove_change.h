// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/phases.h"
#include "sim/prove/prove.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Shows that every device of a phase has all parameters and all of the optimizer's state that it keeps in it:
/// from the phase before, or by a message from a device that has them by then.
/// @param before, after phases that follow one another; `after` has the change, and both plans say what they
/// mean
/// @param machine of all devices that any phase has
Proof prove_change(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
                   const Machine& machine);

}  // namespace convoy::prove
