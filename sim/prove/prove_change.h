// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/phases.h"
#include "sim/prove/prove.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Shows that where devices come into a run, each of them gets all parameters and all of the optimizer's
/// state, from a device that has them by then, before the phase begins. Of plans whose devices each have the
/// whole network.
/// @param before, after phases that follow one another; `after` has the change, and both plans say what they
/// mean
/// @param machine of all devices that any phase has
Proof prove_change(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
                   const Machine& machine);

}  // namespace convoy::prove
