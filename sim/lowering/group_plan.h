// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/exchanges.h"
#include "sim/lowering/part_layouts.h"
#include "sim/lowering/replica_program.h"
#include "sim/plan/phases.h"

namespace convoy::inline lowering {

/// Which stage has which layers, and which micro-batches go through it in which order.
struct GroupStages {
  std::vector<std::uint32_t> of_layer;    ///< stage of each layer
  DeviceGroups groups;                    ///< of each stage
  std::vector<std::vector<Pass>> passes;  ///< of each stage, in order: of all devices
  std::int64_t micro_batches = 1;
};

/// The plan of a schedule, which the groups of each stage run on their own images. Devices of two stages that
/// have the same position in their groups send each other what the schedule transfers, all tensors of a pass
/// in one message at its end. Devices that exchange nothing but gradients, and these in one group, are
/// replicas of their stage, with the launches and the waits of replicas (grouped_launch.h,
/// held_normalization.h).
/// @param meaning whether the plan is to say what its tasks mean (Plan::meaning)
/// @throws InputError where a group is too large for its exchanges.
ReportedPlan plan_groups(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                         const GroupStages& stages, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const ExchangeOptions& communication,
                         bool meaning = false);

}  // namespace convoy::lowering
