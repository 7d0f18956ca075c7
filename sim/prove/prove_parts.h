// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "sim/prove/happens_before.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Whether work is placed operation by operation or channel by channel: in each replica of the network one device
/// updates each part of the parameters, and images are where Meaning::has_images says. Hybrids, whose devices
/// may have the same part of a layer, read them wherever they are needed.
/// @pre devices have parts of layers
bool is_placed(const Meaning& meaning);

/// Whether several devices may update the same part of parameters, with gradients that buckets sum.
bool has_replicas(const Meaning& meaning);

/// Of a plan whose devices work on the same images between them, operation by operation or layer by layer in
/// parts: whatever an operation reads is there, complete, when it begins, each parameter is updated once with
/// the gradient of all images, and messages carry what they say. @throws Refuted, NotCovered
void prove_parts(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, const HappensBefore& order);

}  // namespace convoy::prove
