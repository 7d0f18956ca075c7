// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/layer.h"

namespace convoy::inline models {

/// Layers in an order in which each comes after all it reads; the order given wherever that is one.
/// Where there is none, `cycle` names layers that each read the one before, the first the last.
struct LayerOrder {
  std::vector<LayerIndex> order;
  std::vector<LayerIndex> cycle;
};

/// @param inputs of each layer: indices of layers, or image_input.
LayerOrder order_layers(const std::vector<std::vector<LayerIndex>>& inputs);

}  // namespace convoy::models
