// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "sim/prove/happens_before.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Whether several devices may update the same part of parameters, with gradients that buckets sum (hybrids),
/// rather than one device each part. Then images are read wherever they are needed (Meaning::has_images is
/// empty).
bool has_replicas(const Meaning& meaning);

/// Of a plan whose devices work on the same images between them, operation by operation or layer by layer in
/// parts: whatever an operation reads is there, complete, when it begins, each parameter is updated once with
/// the gradient of all images, and messages carry what they say. @throws Refuted, NotCovered
void prove_parts(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, const HappensBefore& order);

}  // namespace convoy::prove
