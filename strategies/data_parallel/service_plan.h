// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "strategies/data_parallel/server_plan.h"
#include "strategies/strategy.h"

namespace convoy {

/// The rule by which servers answer, the order in which workers set out, and the slowdown of the workers'
/// roles by step jitter, for a plan with its roles and exchanges: workers that do not all wait for each
/// other.
///
/// Workers of `async` and `ssp` begin their first steps spread over the time that one takes, in up to 8
/// groups: they come to the servers at different times, as asynchronous workers do in the long run. Those of
/// `ssp` that compute faster than the slowest begin as far ahead of it as they may, where they are in the
/// long run.
///
/// Step jitter: async workers wait for nobody (1). Backup workers b of N: the (N-b)-th fastest's step. ssp:
/// no later than if all waited for all every s + 1 steps, whose sum varies sqrt(s + 1) times as much.
void add_service(const ServerOptions& options, const StrategyInput& input,
                 const std::vector<Service::Exchange>& exchanges, Plan& plan);

}  // namespace convoy
