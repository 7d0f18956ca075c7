// SPDX-License-Identifier: MIT
#include "sim/base/precision.h"

#include <array>
#include <cstddef>

namespace convoy {

std::string_view to_string(Precision precision) {
  static constexpr std::array<std::string_view, 4> names{"fp32", "tf32", "fp16", "bf16"};
  return names[static_cast<std::size_t>(precision)];
}

}  // namespace convoy
