// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan/parameter_elements.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"

namespace convoy::inline plans {

/// A plan, and what the strategy that made it tells of it.
struct ReportedPlan {
  Plan plan;
  StrategyReport report{};
};

/// What a message of a change brings to a device.
struct StateMove {
  std::size_t round = 0;  ///< of the change's messages; those of one are sent at the same time
  EndpointId from = 0, to = 0;
  KeptValues values;
};

/// How a run comes from one phase to the next.
struct Reconfiguration {
  double preparation_s = 0;  ///< newcomers get ready while the phase before goes on, step by step
  double pause_s = 0;        ///< then nobody trains for so long ...
  /// ... (with a probability of 80 % no more than by so much less, and more, as far as what its parts take is not
  /// stated) ...
  double shorter_s = 0, longer_s = 0;
  /// ... and until all messages of this plan have arrived (no role: there are none); it runs on
  /// first_devices(machine, traffic_devices).
  Plan traffic;
  std::uint32_t traffic_devices = 0;
  /// What the messages bring, where plans say what they mean.
  std::vector<StateMove> moves{};
  bool reads_checkpoint = false;  ///< all devices read parameters and states that were written before
};

/// Steps that follow one another under one plan on the first `devices` devices of a machine. The plan's
/// endpoints are those of first_devices(machine, devices), or of the machine where these are all it has.
struct RunPhase {
  std::int64_t at_step = 0;  ///< the phase is asked for when so many steps have been done
  std::uint32_t devices = 0;
  Plan plan;
  StrategyReport report{};
  Reconfiguration change{};  ///< from the phase before into this one; of the first: nothing
};

}  // namespace convoy::plans
