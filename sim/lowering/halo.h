// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/locality.h"
#include "sim/lowering/sharding.h"

namespace convoy::inline lowering {

/// Positions of the input that devices need for their rows and columns of the output and that others have.
/// With what they get devices hold whole rows of whole columns: all of their own rows and of those that their
/// output is made of, in all columns of which the same holds. Corners come from diagonal neighbours.
struct Halo {
  TrafficMatrix positions;           ///< [owner][reader]: what the reader gets from the owner
  std::vector<std::int64_t> counts;  ///< what each device gets
  bool empty() const;
};
/// Rows (or columns) of the input that each part of an axis holds: its own and those that its output is made
/// of, ascending.
std::vector<std::vector<std::int64_t>> rows_held(const Layer& layer, ImageAxis axis, const Shards& input,
                                                 const Shards& output);
/// @param input who has which rows and columns of the input
/// @param output who makes which rows and columns of the output, on the same grid of devices
Halo halo(const Layer& layer, const SpatialGrid& input, const SpatialGrid& output);

}  // namespace convoy::lowering
