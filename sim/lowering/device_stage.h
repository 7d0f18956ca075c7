// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/lowering/graph_schedule.h"
#include "sim/lowering/part_layouts.h"
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
    // Where operations say what they mean:
    std::uint32_t layout = no_meaning;  ///< its part of the graph's operation (Meaning::layouts)
    bool is_dropped = false;            ///< what it makes goes when the pass is over, and is made again
  };

  Stage stage;                                     ///< its layers, passes and updates
  std::array<std::vector<Position>, 2> positions;  ///< of the forward pass' operations, the backward pass'
  std::vector<std::uint32_t> update_layouts;       ///< of the updates, where that is asked for
};

/// @param stages of each layer
/// @param stage of which the device is
/// @param device of a group, by position
/// @param layouts of the schedule, if operations are to say which part they are
DeviceStage device_stage(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const std::vector<std::uint32_t>& stages,
                         std::uint32_t stage, std::size_t device, PartLayouts* layouts = nullptr);

}  // namespace convoy::lowering
