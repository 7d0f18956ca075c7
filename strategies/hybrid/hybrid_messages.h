// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/table.h"
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

/// The communications of a hybrid plan.
struct HybridMessages {
  static constexpr CommId none = HybridSchedule::none;

  /// Gradients that are summed together, at one time on all devices.
  struct Sum {
    std::string name;
    std::uint32_t ready = 0;    ///< the step that completes the last of them
    std::vector<CommId> comms;  ///< by device of a group; none: nothing to sum
    std::vector<std::size_t> parameters;
  };

  std::vector<CommId> of_exchange;  ///< none: nothing is sent
  std::vector<Sum> sums;            ///< in the order in which they are ready
};

/// Adds the schedule's exchanges and the sums of gradients to a plan, and tells its layouts with what they
/// send. Weights that all devices have are summed over all of them; shares of weights, and what all of a
/// group compute alike, over the groups.
/// @param groups of devices, one a replica
/// @throws InputError where a group is too large for its exchanges.
HybridMessages add_messages(Plan& plan, const StrategyInput& input,
                            const std::vector<std::vector<EndpointId>>& groups,
                            const std::vector<LayerSpread>& spreads, const HybridSchedule& schedule,
                            const HybridCommunication& communication);

}  // namespace convoy
