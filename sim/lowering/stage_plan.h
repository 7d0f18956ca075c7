// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/staged_passes.h"
#include "sim/lowering/stages.h"
#include "sim/plan/phases.h"

namespace convoy::inline lowering {

/// The plan of staged passes. A stage sends its outputs at the end of a pass, in order, while it goes on with
/// the next one; activations, gradients and sums are on streams of their own. All devices of a stage are
/// replicas: they sum its gradients and update its parameters as `sync` says (ReplicaProgram) when their last
/// backward passes have completed the gradients. Without flush they do so after the backward pass that
/// completes the gradients of an update, between the passes of other micro-batches. The plan includes the
/// launches (grouped_launch.h) and waits (held_normalization.h) of replicas.
/// @param stages of the network, as many as the annotation has
/// @throws InputError as GroupSync and ParameterAverages
/// @param network the network as one stage, if it is one: it keeps the programs for later plans that differ
/// only in links, speeds and the way in which sums are sent; nullptr: the programs are made anew
ReportedPlan plan_stages(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                         const Stages& stages, StagedPasses passes, const GradientSync& sync,
                         const WholeNetwork* network = nullptr);

}  // namespace convoy::lowering
