// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/numerics/classroom.h"
#include "sim/plan/phases.h"

namespace convoy::inline numerics {

/// Takes what devices have learnt in one phase of a run into the next. Each device goes on with what it keeps of parameters
/// and of the optimizer's states (HeldStates) and with what the messages of the change bring it, or all of them with what
/// the devices before have written to a checkpoint. Running statistics of batch normalization go along with their layers:
/// everyone has those of the first device that has had the layer. What compression has kept for later steps is gone.
/// @param before, after plans that say what they mean
/// @param change from the one to the other
/// @throws MissingValue: a device would begin without a value that it keeps
template <class Real>
void carry_over(const TrainingGraph& graph, const Plan& before, Classroom<Real>& from, const Plan& after,
                const Reconfiguration& change, Classroom<Real>& to);

}  // namespace convoy::numerics
