// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/locality.h"
#include "sim/lowering/sharding.h"

namespace convoy::inline lowering {

/// The positions of the input that devices need for their rows and columns of the output, and that other
/// devices have. With what it receives a device holds a rectangle: the rows and columns that are its own, and
/// those of which its output is made. Corners come from diagonal neighbours.
struct Halo {
  TrafficMatrix positions;           ///< [owner][reader]: what the reader gets from the owner
  std::vector<std::int64_t> counts;  ///< what each device gets
  bool empty() const;
};
/// The rows (or columns) of the input that each part of an axis holds: its own, and those of which its output
/// is made; ascending.
std::vector<std::vector<std::int64_t>> rows_held(const Layer& layer, ImageAxis axis, const Shards& input,
                                                 const Shards& output);
/// @param input which device has which rows and columns of the input
/// @param output which device makes which rows and columns of the output, on the same grid of devices
Halo halo(const Layer& layer, const SpatialGrid& input, const SpatialGrid& output);

}  // namespace convoy::lowering
