// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/work.h"

namespace convoy::inline numerics {

/// The state that an optimizer keeps of a parameter tensor, and its step: p -= r g (sgd); v = 0.9 v + g,
/// p -= r v (momentum); Adam with betas 0.9 and 0.999 and epsilon 1e-8 (Kingma & Ba, ICLR 2015). As PyTorch's
/// torch.optim.SGD and Adam, without weight decay.
template <class Real>
class OptimizerState {
 public:
  OptimizerState() = default;
  OptimizerState(Optimizer optimizer, std::size_t elements) : optimizer_(optimizer) {
    if (optimizer != Optimizer::sgd) first_.assign(elements, Real{0});
    if (optimizer == Optimizer::adam) second_.assign(elements, Real{0});
  }

  /// Begins the next step of this tensor, which updates one or more ranges of it.
  void begin() { ++steps_; }
  /// Updates elements [begin, end). @param gradient of the whole tensor
  void update(std::vector<Real>& parameter, const std::vector<Real>& gradient, std::size_t begin,
              std::size_t end, double learning_rate);
  /// Elements [begin, end) become those of the same tensor on another device.
  void take(const OptimizerState& from, std::size_t begin, std::size_t end);

 private:
  Optimizer optimizer_ = Optimizer::sgd;
  std::vector<Real> first_, second_;
  std::int64_t steps_ = 0;
};

}  // namespace convoy::numerics
