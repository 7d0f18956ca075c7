// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"
#include "models/layer.h"

namespace convoy::inline models {

/// What attention multiplies on an image.
struct AttentionSizes {
  std::int64_t queries = 0;  ///< tokens, of windows with those that fill up the last ones
  std::int64_t keys = 0;     ///< that each query meets
  std::int64_t channels = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;       ///< of the output
  std::int64_t all_keys = 0;     ///< of the image, without windows
  bool windows = false;          ///< pixels meet those of their own window
  bool several_windows = false;  ///< and there are several

  /// Values of the softmax.
  double scores() const {
    return static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys);
  }
  /// Tokens whose keys and values are computed: of windows those of all of them, filled up.
  double key_tokens() const { return static_cast<double>(windows ? queries : all_keys); }
};

/// @param output shape [channels, tokens...] of the result
/// @param keys shape of the keys: of the input, where there is one
AttentionSizes attention_sizes(const Attention& attention, const Shape& output, const Shape& keys);

/// Whether the scores are written and kept, as the layer says, or else as the framework does: PyTorch 2 has
/// scaled_dot_product_attention, which recomputes them, where there is neither position bias nor cosine.
bool keeps_scores(const Attention& attention, Framework framework);

}  // namespace convoy::models
