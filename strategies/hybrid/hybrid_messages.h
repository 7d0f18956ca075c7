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
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
  RingOrder rings = RingOrder::mesh;
  double bucket_bytes = 0;
  bool overlap = true;  ///< gradients are summed while backward goes on
  Fidelity fidelity = Fidelity::automatic;
  SourcePos pos;  ///< of the strategy, for errors
};

/// Devices of each stage, in groups that have all of its layers between them: [stage][replica][device].
using HybridGroups = std::vector<std::vector<std::vector<EndpointId>>>;

/// The communications of a hybrid plan.
struct HybridMessages {
  static constexpr CommId none = HybridSchedule::none;

  /// Gradients that are summed together, at one time on all devices of a stage.
  struct Sum {
    std::string name;
    std::uint32_t ready = 0;    ///< the step that completes the last of them
    std::vector<CommId> comms;  ///< by device of a group; none: nothing to sum
    std::vector<std::size_t> parameters;
  };

  std::vector<std::vector<CommId>> of_exchange;  ///< by micro-batch; none: nothing is sent
  std::vector<std::vector<Sum>> sums;            ///< by stage, in the order in which they are ready
};

/// Adds the schedule's exchanges, once a micro-batch, and the sums of gradients to a plan, and tells its
/// layouts with what they send. Weights that all devices of a stage have are summed over all of them; shares
/// of weights, and what all of a group compute alike, over the groups.
/// @param stages of each layer
/// @throws InputError where a group is too large for its exchanges.
HybridMessages add_messages(Plan& plan, const StrategyInput& input, const HybridGroups& groups,
                            const std::vector<std::uint32_t>& stages,
                            const std::vector<LayerSharding>& shardings, const HybridSchedule& schedule,
                            const HybridCommunication& communication, std::int64_t micro_batches);

}  // namespace convoy
