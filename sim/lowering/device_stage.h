// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/lowering/graph_schedule.h"
#include "sim/lowering/stages.h"

namespace convoy::inline lowering {

/// What one device of a stage's groups runs: its shares of the schedule's steps, with the memory that they
/// hold, and where exchanges come in between.
struct DeviceStage {
  static constexpr std::uint32_t none = GraphSchedule::none;

  /// An operation of a pass, between what it waits for and what it lets go.
  struct Position {
    std::uint32_t waits = none;   ///< the step whose exchanges it waits for
    std::uint32_t starts = none;  ///< the step whose exchanges begin after it
  };

  Stage stage;                                     ///< its layers, passes and updates
  std::array<std::vector<Position>, 2> positions;  ///< of the forward pass' operations, the backward pass'
};

/// @param stages of each layer
/// @param stage of which the device is
/// @param device of a group, by position
DeviceStage device_stage(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const std::vector<std::uint32_t>& stages,
                         std::uint32_t stage, std::size_t device);

}  // namespace convoy::lowering
