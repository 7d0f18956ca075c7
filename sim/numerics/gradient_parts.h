// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/numerics/network.h"

namespace convoy::inline numerics {

/// Operations whose gradients have been added up in a gradient; ascending.
using GradientParts = std::vector<OpId>;

/// Those of either. @pre both ascending
GradientParts united(const GradientParts& a, const GradientParts& b);

/// What goes into the gradient of each layer's output. It follows from the model: the gradients that the
/// readers of an output make, or the gradient of a reader's own output where that has no operation of its own,
/// and the loss of an output.
struct GradientContents {
  GradientContents(const TrainingGraph& graph, const NetworkIndex& index);

  std::vector<bool> has_forward, has_data_gradient;  ///< by layer: whether they are operations
  std::vector<GradientParts> whole;                  ///< by layer
};

}  // namespace convoy::numerics
