// SPDX-License-Identifier: MIT
#include "models/layer_operations.h"

namespace convoy::inline models {

LayerOperations::LayerOperations(const TrainingGraph& graph)
    : forward(graph.model.layers.size(), false), data_gradient(forward), weight_gradient(forward) {
  for (const Operation& operation : graph.operations) {
    if (operation.part != OperationPart::layer) continue;
    if (operation.phase == Phase::forward) forward[operation.layer] = true;
    if (operation.phase == Phase::data_gradient) data_gradient[operation.layer] = true;
    if (operation.phase == Phase::weight_gradient) weight_gradient[operation.layer] = true;
  }
}

LayerIndex LayerOperations::source_of(const Model& model, LayerIndex layer) const {
  while (layer != image_input && !forward[static_cast<std::size_t>(layer)])
    layer = model.layers[static_cast<std::size_t>(layer)].inputs.front();
  return layer;
}

}  // namespace convoy::models
