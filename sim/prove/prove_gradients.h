// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "sim/prove/happens_before.h"
#include "sim/prove/parameter_parts.h"
#include "sim/prove/prove_rounds.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Every replica of a parameter is updated once, with the gradients of all images of the global batch, each
/// once, and is read before that only.
/// @param parts of devices that have parts of layers between them; nullptr: each has whole layers
/// @throws Refuted, NotCovered
void prove_gradients(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                     const Machine& machine, const HappensBefore& order, RoundRules& rounds,
                     ParameterParts* parts = nullptr);

}  // namespace convoy::prove
