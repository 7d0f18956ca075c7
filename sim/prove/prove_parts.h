// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/prove/happens_before.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Of a plan whose devices work on the same images between them, operation by operation or layer by layer in
/// parts: whatever an operation reads is there, complete, when it begins, each parameter is updated once with
/// the gradient of all images, and messages carry what they say. @throws Refuted, NotCovered
void prove_parts(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                 const HappensBefore& order);

}  // namespace convoy::prove
