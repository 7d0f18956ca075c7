// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/numerics/network.h"

namespace convoy::inline numerics {

/// Operations whose gradients have been added up in a gradient; ascending.
using GradientParts = std::vector<OpId>;

/// Those of either. @pre both ascending
GradientParts united(const GradientParts& a, const GradientParts& b);

/// Two parts of a gradient, and what they are added up.
struct TwoParts {
  GradientParts first, second, both;
};

/// Gradients of which something is there: whether an addition reads them as the graph says.
using ListedGradients = std::map<GradientParts, bool>;

/// Those two of `all` that an addition adds up: as many as the graph says, and of those, the two that give most of `whole`
/// together; nothing twice, and not what is there already; the first such. Nothing where a part is missing.
std::optional<TwoParts> two_to_add_up(const ListedGradients& all, const GradientParts& whole);

/// What goes into the gradient of each layer's output. It follows from the model: the gradients that the
/// readers of an output make, or the gradient of a reader's own output where that has no operation of its own,
/// and the loss of an output.
struct GradientContents {
  GradientContents(const TrainingGraph& graph, const NetworkIndex& index);

  std::vector<bool> has_forward, has_data_gradient;  ///< by layer: whether they are operations
  std::vector<GradientParts> whole;                  ///< by layer
};

}  // namespace convoy::numerics
