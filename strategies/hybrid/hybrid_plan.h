// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/hybrid/hybrid_messages.h"
#include "strategies/strategy.h"

namespace convoy {

/// The plan of a schedule on `replicas` groups of consecutive devices.
/// @throws InputError where a group is too large for its exchanges.
Plan plan_hybrid(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
                 const HybridSchedule& schedule, const HybridCommunication& communication);

}  // namespace convoy
