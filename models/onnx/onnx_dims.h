// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace convoy::inline models {

/// Sizes along all axes, that of the batch included.
using OnnxDims = std::vector<std::int64_t>;

/// Values of a tensor at most: whole numbers that a double holds.
constexpr std::int64_t max_onnx_count = std::int64_t{1} << 53;

/// Product of sizes; nothing where one is negative or it is more than 2^53.
std::optional<std::int64_t> count_of(const OnnxDims& dims);

/// NumPy's broadcasting. @return nothing where the shapes do not go together.
std::optional<OnnxDims> broadcast(const OnnxDims& a, const OnnxDims& b);

/// The shape that Reshape gives: 0 keeps a size, one -1 takes what is left. @return nothing where none fits.
std::optional<OnnxDims> reshaped(const OnnxDims& from, const std::vector<double>& to, bool zero_is_zero);

/// Axes of a tensor of `rank`, negative ones counted from the end; sorted. @return nothing where one is out
/// of range or there twice.
std::optional<std::vector<std::size_t>> axes_of(const std::vector<std::int64_t>& axes, std::size_t rank);

}  // namespace convoy::models
