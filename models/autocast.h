// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/layer_costs.h"

namespace convoy::inline models {

/// Of each layer, whether its output has 4 bytes a value although the step runs in fp16 or bf16. PyTorch's
/// autocast runs layer and group normalizations and softmaxes in single precision, and a kernel that reads a
/// parameter or a tensor in single precision writes one (aten/src/ATen/autocast_mode.cpp, CastPolicy::fp32
/// and type promotion): sums with learned positions and products with learned factors are, and so is every
/// residual sum after them. Products and convolutions cast to half what they read. No layer's under other
/// frameworks and precisions.
std::vector<bool> single_precision_outputs(const Model& model, Framework framework, Precision precision);

/// Of each layer, the bytes a value that its output has in memory until its last use: 4 where
/// single_precision_outputs, but for what the backward pass keeps of it. A product that keeps its input keeps
/// the copy in half precision that it reads; the tensor itself goes, unless another reader keeps it.
std::vector<double> held_bytes_a_value(const Model& model, Framework framework, Precision precision);

/// Adds to `costs` of layer `index` what single_precision_outputs cost: twice the bytes of these tensors,
/// casts of what products read, and those around a softmax of scores.
/// @param casts false where a compiler makes them part of other kernels
void add_single_precision(LayerCosts& costs, const Model& model, std::size_t index,
                          const std::vector<bool>& single, Framework framework, Precision precision,
                          bool casts);

}  // namespace convoy::models
