// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/prove/happens_before.h"
#include "sim/prove/prove_rounds.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Whatever an operation reads of other operations is there when it begins, of the same images, and a
/// gradient is the sum of all that the graph adds up in it, each once. @throws Refuted, NotCovered
void prove_results(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const HappensBefore& order, RoundRules& rounds);

}  // namespace convoy::prove
