// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "models/layer_operations.h"
#include "sim/numerics/network.h"
#include "sim/prove/gradient_ways.h"

namespace convoy::inline numerics {

/// What has been added up in a gradient; ascending.
using GradientParts = std::vector<Maker>;

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
class GradientContents {
 public:
  GradientContents(const TrainingGraph& graph, const NetworkIndex& index);

  using Slot = GradientWays::Slot;
  LayerOperations has;
  std::vector<GradientParts> whole;  ///< by layer

  /// What an operation makes for the gradient of an input of its layer.
  Maker made(OpId operation, const Slot& input) const { return {operation, ways_.find(0, input)}; }
  /// Parts of the gradient of a layer's output, as the layer hands them on to an input.
  GradientParts handed_on(const GradientParts& parts, const Slot& input) const;
  /// Of which parts of the gradient of its output the layer makes these of its input; nothing: it makes not all of them.
  std::optional<GradientParts> taken_from(const GradientParts& parts, const Slot& input) const;
  /// Those of them that the layer hands on to its input, as they are in the gradient of its output.
  GradientParts through(const GradientParts& parts, const Slot& input) const;

 private:
  GradientWays ways_;
};

}  // namespace convoy::numerics
