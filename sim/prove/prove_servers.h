// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/prove/happens_before.h"
#include "sim/prove/prove_rounds.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// Whether devices average parameters with each other, each at its own pace.
bool has_peers(const Plan& plan);

/// Whether parameters are updated with gradients that are pushed to where this is done.
bool has_servers(const Plan& plan);

/// Of such a plan: every server gets the gradients of all images of its parameters from all workers, each
/// once, before it updates them, and every worker gets the new parameters when it reads the old ones no more,
/// and before it reads the new ones. @throws Refuted, NotCovered
void prove_servers(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const HappensBefore& order, RoundRules& rounds);

/// What a service lets workers do that have no common step; "": there is none.
std::string allowed_by_service(const Plan& plan);

/// Images of all workers, of which a service with a quorum takes those of some.
double images_of_workers(const Plan& plan);

}  // namespace convoy::prove
