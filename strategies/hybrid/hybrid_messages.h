// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/lowering/gradient_sync.h"
#include "strategies/hybrid/hybrid_schedule.h"
#include "strategies/strategy.h"

namespace convoy {

/// How a hybrid plan communicates.
struct HybridCommunication {
  const GradientSync& sync;
  SourcePos pos;  ///< of the strategy, for errors
};

/// Devices of each stage, in groups that have all of its layers between them: [stage][replica][device].
using HybridGroups = std::vector<std::vector<std::vector<EndpointId>>>;

/// The communications of a schedule's exchanges in a plan: by micro-batch and exchange; HybridSchedule::none:
/// nothing is sent.
using ExchangeComms = std::vector<std::vector<CommId>>;

/// Adds the schedule's exchanges to a plan, once a micro-batch.
/// @throws InputError where a group is too large for its exchanges.
ExchangeComms add_exchanges(Plan& plan, const StrategyInput& input, const HybridGroups& groups,
                            const HybridSchedule& schedule, const HybridCommunication& communication,
                            std::int64_t micro_batches);

}  // namespace convoy
