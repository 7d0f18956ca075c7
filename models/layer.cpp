// SPDX-License-Identifier: MIT
#include "models/layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace convoy::inline models {

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::int64_t Layer::parameter_elements() const {
  std::int64_t sum = 0;
  for (const ParameterTensor& parameter : parameters) sum += parameter.elements;
  return sum;
}

}  // namespace convoy::models
