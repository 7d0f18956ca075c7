// SPDX-License-Identifier: MIT
#include "models/onnx/onnx_dims.h"

#include <algorithm>

#include "models/onnx/onnx_graph.h"

namespace convoy::inline models {

std::optional<std::int64_t> count_of(const OnnxDims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims)
    if (size < 0 || size > max_onnx_count || __builtin_mul_overflow(count, size, &count) ||
        count > max_onnx_count)
      return std::nullopt;
  return count;
}

std::optional<OnnxDims> broadcast(const OnnxDims& a, const OnnxDims& b) {
  const OnnxDims& longer = a.size() >= b.size() ? a : b;
  const OnnxDims& shorter = a.size() >= b.size() ? b : a;
  OnnxDims result = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = result[shift + i];
    if (size == 1)
      size = shorter[i];
    else if (shorter[i] != 1 && shorter[i] != size)
      return std::nullopt;
  }
  if (!count_of(result)) return std::nullopt;
  return result;
}

std::optional<OnnxDims> reshaped(const OnnxDims& from, const std::vector<double>& to, bool zero_is_zero) {
  OnnxDims result;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::int64_t size = to_integer(to[i]);
    if (size == 0 && !zero_is_zero) {
      if (i >= from.size()) return std::nullopt;
      size = from[i];
    } else if (size == -1) {
      if (open) return std::nullopt;
      open = i;
      size = 1;
    }
    result.push_back(size);
  }
  const std::optional<std::int64_t> have = count_of(from), want = count_of(result);
  if (!have || !want) return std::nullopt;
  if (open) {
    if (*want == 0 || *have % *want != 0) return std::nullopt;
    result[*open] = *have / *want;
  } else if (*have != *want) {
    return std::nullopt;
  }
  return result;
}

std::optional<std::vector<std::size_t>> axes_of(const std::vector<std::int64_t>& axes, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  std::vector<std::size_t> result;
  for (const std::int64_t axis : axes) {
    if (axis < -size || axis >= size) return std::nullopt;
    result.push_back(static_cast<std::size_t>(axis < 0 ? axis + size : axis));
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) return std::nullopt;
  return result;
}

}  // namespace convoy::models
