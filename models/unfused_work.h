// SPDX-License-Identifier: MIT
#pragma once

#include "models/layer_costs.h"

namespace convoy::inline models {

/// Adds to `costs` of layer `index` what a framework moves and issues besides where no compiler makes one
/// kernel of its operations: a product that is summed up for the gradient of a smaller input, the loss of a
/// layer's own weights, and what TensorFlow does around means, biases and filters.
void add_unfused_work(LayerCosts& costs, const Model& model, std::size_t index, Framework framework,
                      ExecutionMode execution, Precision precision);

/// Of a layer's forward operation that runs a second time for the backward pass: the loss of its own weights
/// is computed once.
/// @param forward of the first run
Work work_again(const Work& forward, const Layer& layer, ExecutionMode execution);

/// Whether the sum of the squares of the layer's weights is part of the loss (`l2_loss`).
bool has_l2_loss(const Layer& layer);

}  // namespace convoy::models
