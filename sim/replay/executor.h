// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/replay.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// A plan whose flows have been expanded and folded.
struct FoldedPlan {
  const Plan& plan;
  const Machine& machine;
  const CostModel& cost;
  const FlowTable& table;
  const std::vector<bool>& one_by_one;  ///< by pattern (fidelity.h)
  const Folding& folding;
  /// By role, where roles are of networks or software of their own; empty: `cost`.
  std::vector<const CostModel*> cost_of_role = {};
};

/// The conditions under which a plan is executed.
struct Surroundings {
  Contention contention = Contention::shared;
  NetworkModel network_model = NetworkModel::convoy;
  Disturbances disturbances{};
  ServiceLog* service_log = nullptr;
};

/// What happened to the classes of a folding. For a plan with a service: the part of one step in what
/// happened during the measurement.
struct Execution {
  double end_s = 0;                 ///< length of the step
  std::vector<Timeline> timelines;  ///< by endpoint class
  struct Usage {
    DeviceTimes times;
    double end_s = 0;
  };
  std::vector<Usage> usage;         ///< by endpoint class
  std::vector<double> link_busy_s;  ///< by link class
  std::vector<double> port_busy_s;  ///< by Link::port of the machine
  std::vector<double> pace;         ///< by endpoint class: how often its program runs in a step
  std::optional<StalenessResult> staleness;
  /// Of programs that leave periods out: so many more have to be listed for what these take to be known; 0: it
  /// is known, and in all that is above.
  std::uint64_t periods_missing = 0;
  double doubt = 0;  ///< ReplayResult::doubt
  double least_s =
      0;  ///< of a service with drawn compute times: no mean step is shorter (with_clients_alone)
  double input_wait_s = 0;  ///< of a service: the longest mean wait of a client for images, per step
};

/// Runs every class's program on the engine. @throws std::runtime_error that names the blocked tasks if it
/// cannot finish.
Execution execute(const FoldedPlan& folded, const Surroundings& surroundings);

}  // namespace convoy::replays
