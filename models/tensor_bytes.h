// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"

namespace convoy::inline models {

/// Bytes of the tensors of one image as they are sent, and as they are in memory before anything casts them:
/// those in single precision under autocast (autocast.h) have 4 a value.
class TensorBytes {
 public:
  explicit TensorBytes(const TrainingGraph& graph);
  /// @param layer whose output it is, or image_input
  double operator()(LayerIndex layer) const;
  /// Of all inputs of a layer.
  double of_inputs(std::size_t layer) const;
  /// Of one value of the layer's output.
  double of_value(LayerIndex layer) const;

 private:
  const TrainingGraph& graph_;
  std::vector<bool> single_;
};

}  // namespace convoy::models
