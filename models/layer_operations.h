// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"

namespace convoy::inline models {

/// Which kernels of its own each layer of a graph has, by layer; what belongs to a loss or adds gradients up is none of
/// them. A layer without a forward kernel computes nothing: its output is a view of its inputs. One without a data gradient
/// hands the gradient of its output on to its inputs as it is, or has none.
struct LayerOperations {
  explicit LayerOperations(const TrainingGraph& graph);

  std::vector<bool> forward, data_gradient, weight_gradient;

  /// The first input that has a forward kernel, through views from `layer` on by the first of their inputs; or the image.
  LayerIndex source_of(const Model& model, LayerIndex layer) const;
};

}  // namespace convoy::models
