// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/layer.h"

namespace convoy::inline models {

/// Fills in output, parameters and macs of a layer from its kind and the shapes it reads.
/// @throws InputError at the layer's place, naming it, where the shapes do not fit.
void infer_shape(Layer& layer, const std::vector<Shape>& inputs);

}  // namespace convoy::models
