// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/model.h"

namespace convoy::inline models {

// Which parts of its inputs a part of a layer's output is made of: what strategies that split layers ask.
// Rows and channels are told of every kind of layer by name: a new kind does not compile before they are.

/// Axis of an image's tensor that a layout by rows or columns cuts: 1 height, 2 width.
enum class ImageAxis : std::uint8_t { height = 1, width = 2 };

/// Whether a layer works row by row (or column by column), with neighbours' at most.
bool is_spatial(const Layer& layer);

/// Whether a row of the output may be made of other rows of the input than the same, so that sizes may
/// differ.
/// @pre is_spatial(layer)
bool reads_windows(const Layer& layer, ImageAxis axis);

/// Rows (or columns) of the input that row `out` of the layer's output is made of, ascending; what lies in
/// the padding is left out. From the definitions of convolution, transposed convolution and pooling;
/// upsampling takes the nearest row, a slice along the axis what it says, and every other layer the row
/// itself.
/// @pre is_spatial(layer)
std::vector<std::int64_t> rows_read(const Layer& layer, ImageAxis axis, std::int64_t input_size,
                                    std::int64_t out);

/// The one channel of the inputs that a channel of the output is made of.
struct ChannelSource {
  static constexpr std::size_t every_input = std::numeric_limits<std::size_t>::max();
  std::size_t input;  ///< index into Layer::inputs, or every_input: the channel of each of them
  std::int64_t channel;
};

/// Of each channel of the output, where the layer works channel by channel or passes channels on; empty where
/// channels mix, or nothing is known of them.
std::vector<ChannelSource> channel_sources(const Model& model, const Layer& layer);

}  // namespace convoy::models
