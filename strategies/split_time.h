// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "models/training_graph.h"
#include "sim/costs/cost_model.h"

namespace convoy::inline search {

/// A time that none of `devices` devices stays below for its part of an operation on `images` images,
/// whichever layout of hybrids (images, channels in or out, rows, columns, or everything on each) splits its
/// layer among them: the least over the layouts, with the smallest share that integers leave a device, at
/// most that part of all bytes, and the kernel's geometry as it is then and as it is where what does not
/// divide gives one more.
/// @param grid of as many rows times columns as devices, where a layer may be split by both at once
/// @pre 1 < devices <= images, and no layout has fewer channels, rows or columns than devices
double least_split_time_s(const TrainingGraph& graph, const Operation& operation, double images,
                          std::int64_t devices, const std::optional<Size2>& grid, const CostModel& cost,
                          const DeviceType& type);

}  // namespace convoy::search
