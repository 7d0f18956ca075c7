// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "models/training_graph.h"

namespace convoy::inline models {

/// A matrix of gradients as two factors: [rows, rank] and [columns, rank].
struct LowRankShape {
  double rows = 0, columns = 0, rank = 0;
};

/// The factors of a parameter's gradient at `rank`, or at the matrix's smaller dimension where that is less.
/// A weight is the matrix that PyTorch's `weight.view(weight.shape[0], -1)` is: a row for each output channel
/// of a convolution or linear layer (of a transposed convolution for each input channel). Nothing for biases,
/// for scales and shifts of normalizations, for what has no such channels (`custom` layers, embeddings), and
/// for matrices that are no larger than their factors.
/// @param elements of the parameter that there are: whole rows of it; else it is no matrix
std::optional<LowRankShape> low_rank_shape(const Model& model, const Parameter& parameter, double elements,
                                           std::int64_t rank);

}  // namespace convoy::models
