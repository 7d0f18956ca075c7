// SPDX-License-Identifier: MIT
#include "models/attention.h"

#include <algorithm>

namespace convoy::inline models {
namespace {

/// The size to which windows fill up a side.
std::int64_t filled_up(std::int64_t side, std::int64_t window) {
  return (side + window - 1) / window * window;
}

}  // namespace

AttentionSizes attention_sizes(const Attention& attention, const Shape& output, const Shape& keys) {
  AttentionSizes sizes;
  sizes.channels = output.front();
  sizes.heads = attention.heads;
  sizes.tokens = elements(output) / output.front();
  sizes.all_keys = elements(keys) / keys.front();
  sizes.queries = sizes.tokens;
  sizes.keys = sizes.all_keys;
  sizes.windows = attention.window.h > 0 && output.size() == 3;
  if (sizes.windows) {
    sizes.queries = filled_up(output[1], attention.window.h) * filled_up(output[2], attention.window.w);
    sizes.keys = attention.window.h * attention.window.w;
    sizes.several_windows = sizes.queries > sizes.keys;
  }
  return sizes;
}

bool keeps_scores(const Attention& attention, Framework framework) {
  if (attention.scores != Attention::Scores::of_framework) return attention.scores == Attention::Scores::kept;
  return framework != Framework::pytorch || attention.position_bias || attention.cosine;
}

}  // namespace convoy::models
