// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"

namespace convoy::inline costs {

/// The layout in which convolutions run. TensorFlow's grappler turns a graph in values of 4 bytes (DT_FLOAT,
/// so TF32 too) into channels first on GPUs, however it was written; it keeps NHWC where half of the
/// convolutions are in fp16 (grappler's generic_layout_optimizer.cc; layout_optimizer.cc before TensorFlow 2).
/// Networks that compute on tokens have channels last in any case (token_order.h).
inline Layout kernel_layout(const TrainingOptions& options) {
  if (options.on_tokens) return Layout::nhwc;
  const bool tensorflow =
      options.framework == Framework::tensorflow || options.framework == Framework::tensorflow1;
  const bool rewritten =
      tensorflow && options.execution != ExecutionMode::eager && element_bytes(options.precision) == 4;
  return rewritten ? Layout::nchw : options.layout;
}

}  // namespace convoy::costs
