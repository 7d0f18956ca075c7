// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/server_exchange.h"
#include "sim/lowering/stage_plan.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// The plan of replicas of the whole `network` (staged passes of one stage) that push gradients to servers,
/// which add them up, update the parameters and send them back. Workers send a message when their last
/// backward pass has completed its gradients; they keep no states of the optimizer and update nothing. If
/// workers have no common steps, servers answer by a rule (service_rule.h).
Plan plan_servers(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                  const Stage& network, const StagedPasses& passes, const ServerExchange& exchange);

}  // namespace convoy::lowering
