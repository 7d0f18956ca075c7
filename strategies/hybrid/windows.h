// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/locality.h"
#include "strategies/hybrid/sharding.h"

namespace convoy {

/// Rows of the input that devices need for their rows of the output and that others have.
struct Halo {
  Traffic rows;                      ///< [owner][reader]: rows that the reader gets from the owner
  std::vector<std::int64_t> counts;  ///< rows that each device gets
  bool empty() const;
};
/// @param input who has which row of the input
/// @param output who makes which row of the output
Halo halo(const Layer& layer, ImageAxis axis, const Shards& input, const Shards& output);

}  // namespace convoy
