// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/layer.h"
#include "strategies/hybrid/sharding.h"

namespace convoy {

/// Axis of an image's tensor that a spatial layout cuts: 1 height, 2 width.
enum class ImageAxis : std::uint8_t { height = 1, width = 2 };

/// Rows (or columns) of the input that row `out` of the layer's output is made of, ascending; what lies in
/// the padding is left out. From the definitions of convolution, transposed convolution and pooling;
/// upsampling takes the nearest row, a slice along the axis what it says, and every other layer the row
/// itself.
std::vector<std::int64_t> rows_read(const Layer& layer, ImageAxis axis, std::int64_t input_size,
                                    std::int64_t out);

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
