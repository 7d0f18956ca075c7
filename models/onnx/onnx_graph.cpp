// SPDX-License-Identifier: MIT
#include "models/onnx/onnx_graph.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline models {

std::int64_t to_integer(double value) {
  constexpr double largest = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return 0;
  return static_cast<std::int64_t>(std::clamp(value, -largest, largest));
}

const OnnxAttribute* OnnxNode::find(std::string_view attribute) const {
  for (const OnnxAttribute& known : attributes)
    if (known.name == attribute) return &known;
  return nullptr;
}

double OnnxNode::number_or(std::string_view attribute, double fallback) const {
  const OnnxAttribute* found = find(attribute);
  return found && found->number ? *found->number : fallback;
}

std::string_view OnnxNode::text_or(std::string_view attribute, std::string_view fallback) const {
  const OnnxAttribute* found = find(attribute);
  return found && !found->text.empty() ? std::string_view(found->text) : fallback;
}

std::vector<std::int64_t> OnnxNode::integers(std::string_view attribute) const {
  std::vector<std::int64_t> result;
  if (const OnnxAttribute* found = find(attribute))
    for (const double number : found->numbers) result.push_back(to_integer(number));
  return result;
}

}  // namespace convoy::models
