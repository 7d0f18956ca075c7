// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

#include "models/layer.h"

namespace convoy::inline models {

/// Arithmetic of an activation function, a value; divisions and exponentials count as one each. These kernels
/// are bound by memory on every device, so the figures decide nothing: they keep FLOP totals honest.
inline double activation_flops(Activation::Function function) {
  //                                             relu relu6 leaky hswish hsigmoid silu gelu sigmoid tanh
  //                                             softmax
  static constexpr std::array<double, 10> flops{1, 2, 2, 5, 4, 5, 10, 4, 6, 5};
  return flops[static_cast<std::size_t>(function)];
}

}  // namespace convoy::models
