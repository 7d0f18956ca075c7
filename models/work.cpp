// SPDX-License-Identifier: MIT
#include "models/work.h"

#include <array>
#include <cstddef>

namespace convoy::inline models {

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, 4> names{"forward", "data_gradient", "weight_gradient",
                                                         "update"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view to_string(KernelKind kind) {
  static constexpr std::array<std::string_view, 9> names{
      "convolution", "depthwise_convolution", "matmul", "normalization", "elementwise",
      "pooling",     "softmax_loss",          "update", "custom"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace convoy::models
