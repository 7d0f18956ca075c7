// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline prove {

/// How a tensor gets what an operation makes for its gradient: by which input of the operation's layer, and then through
/// which inputs of layers that hand their gradient on (add, concat, views). 0: the tensor is what the operation works
/// on, as of a loss.
using Way = std::uint32_t;

/// What makes a part of a tensor's gradient. An operation that reads the tensor in two ways makes two parts of it.
using Maker = std::pair<OpId, Way>;

/// The ways that there are.
class GradientWays {
 public:
  using Slot = std::pair<std::uint32_t, std::size_t>;  ///< a layer, and which of its inputs
  struct Step {
    Way before;
    Slot by;
  };
  /// The way to an input of a layer of what has come to its output's gradient by a way, or, of what the layer's own
  /// operation makes, by 0.
  Way longer(Way before, const Slot& by) {
    const auto [it, fresh] = numbers_.try_emplace({before, by}, static_cast<Way>(steps_.size()));
    if (fresh) steps_.push_back({before, by});
    return it->second;
  }
  /// The same where it is known.
  Way find(Way before, const Slot& by) const { return numbers_.at({before, by}); }
  /// The last step of a way. @pre it is not 0
  const Step& last(Way way) const { return steps_[way]; }

 private:
  std::vector<Step> steps_{{0, {0, 0}}};
  std::map<std::pair<Way, Slot>, Way> numbers_;
};

}  // namespace convoy::prove
