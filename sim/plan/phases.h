// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan/parameter_elements.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"

namespace convoy::inline plans {

/// A plan, and what the strategy that made it reports about it.
struct ReportedPlan {
  Plan plan;
  StrategyReport report{};
};

/// What a message of a reconfiguration brings to a device.
struct StateMove {
  std::size_t round = 0;  ///< messages of the same round are sent at the same time
  EndpointId from = 0, to = 0;
  KeptValues values;
};

/// How a run changes from one phase to the next.
struct Reconfiguration {
  double preparation_s = 0;  ///< new devices get ready while the phase before goes on step by step
  double pause_s = 0;        ///< then training stops, also until all messages of `traffic` have arrived
  /// By how much the pause may be shorter, and longer, with a probability of 80 %, as far as the durations of
  /// its parts are not stated.
  double shorter_s = 0, longer_s = 0;
  /// Messages at the end of the pause, between first_devices(machine, traffic_devices); no role: there are
  /// none.
  Plan traffic;
  std::uint32_t traffic_devices = 0;
  /// What the messages bring, if plans have a meaning.
  std::vector<StateMove> moves{};
  bool reads_checkpoint = false;  ///< all devices read parameters and states that were written before
};

/// Steps that follow one another under one plan on the first `devices` devices of a machine. The plan's
/// endpoints are those of first_devices(machine, devices), or of the machine where these are all it has.
struct RunPhase {
  std::int64_t at_step = 0;  ///< the phase is requested when so many steps have been done
  std::uint32_t devices = 0;
  Plan plan;
  StrategyReport report{};
  Reconfiguration change{};  ///< from the phase before to this one; empty in the first phase
};

}  // namespace convoy::plans
