// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/collectives.h"
#include "strategies/hybrid/hybrid_schedule.h"
#include "strategies/strategy.h"

namespace convoy {

/// How a hybrid plan communicates.
struct HybridCommunication {
  AllReduceAlgorithm algorithm;
  RingOrder rings;
  double bucket_bytes;
  bool overlap;  ///< gradients are summed while backward goes on
  Fidelity fidelity;
  SourcePos pos;  ///< of the strategy, for errors
};

/// The plan of a schedule on `replicas` groups of consecutive devices.
/// @throws InputError where a group is too large for its exchanges.
Plan plan_hybrid(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
                 const HybridSchedule& schedule, const HybridCommunication& communication);

}  // namespace convoy
