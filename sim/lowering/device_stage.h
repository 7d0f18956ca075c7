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

/// What one device of a stage's groups runs: its shares of the schedule's steps, the memory that these
/// occupy, and the exchanges between them.
struct DeviceStage {
  static constexpr std::uint32_t none = GraphSchedule::none;

  /// An operation of a pass, with the exchanges that it waits for and those that begin after it.
  struct Position {
    std::uint32_t waits = none;   ///< the step whose exchanges it waits for
    std::uint32_t starts = none;  ///< the step whose exchanges begin after it
    // Where operations say what they mean:
    std::uint32_t layout = no_meaning;  ///< its part of the graph's operation (Meaning::layouts)
    bool is_dropped = false;            ///< its result is freed at the end of the pass, and made again later
  };

  Stage stage;                                     ///< its layers, passes and updates
  std::array<std::vector<Position>, 2> positions;  ///< operations of the forward and of the backward pass
  std::vector<std::uint32_t> update_layouts;       ///< of the updates, if that is asked for
};

/// @param stages of each layer
/// @param stage the stage to which the device belongs
/// @param device its position in the group
/// @param layouts of the schedule, if operations are to say which part they are
DeviceStage device_stage(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const std::vector<std::uint32_t>& stages,
                         std::uint32_t stage, std::size_t device, PartLayouts* layouts = nullptr);

}  // namespace convoy::lowering
