// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Whenever an operation runs, at least the bytes of all buffers of the training graph are allocated that
/// were made, or received whole, before and that it or a later one uses; after the last operation, none are.
/// @throws Refuted
void prove_memory(const Plan& plan, const TrainingGraph& graph, const Machine& machine);

}  // namespace convoy::prove
