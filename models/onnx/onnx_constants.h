// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/onnx_graph.h"

namespace convoy {

/// Sizes along all axes, that of the batch included.
using OnnxDims = std::vector<std::int64_t>;

/// What a name in the graph stands for: a constant (a weight, whose values may be unknown, or a small tensor
/// of known values) or, where the import says so, a result of the network.
struct OnnxConstant {
  OnnxDims dims;
  std::optional<std::vector<double>> values;
  bool is_float = false;
  std::int64_t count() const;  ///< of values, at most 2^53
};

/// Product of sizes; nothing where one is negative or it is more than 2^53.
std::optional<std::int64_t> count_of(const OnnxDims& dims);

/// NumPy's broadcasting. @return nothing where the shapes do not go together.
std::optional<OnnxDims> broadcast(const OnnxDims& a, const OnnxDims& b);

/// The shape that Reshape gives: 0 keeps a size, one -1 takes what is left. @return nothing where none fits.
std::optional<OnnxDims> reshaped(const OnnxDims& from, const std::vector<double>& to, bool zero_is_zero);

/// Axes of a tensor of `rank`, negative ones counted from the end; sorted. @return nothing where one is out
/// of range or there twice.
std::optional<std::vector<std::size_t>> axes_of(const std::vector<std::int64_t>& axes, std::size_t rank);

/// Evaluates a node all of whose inputs are constants. Values are computed for the operators that shapes are
/// computed with, as long as they are few; otherwise the result has a shape only.
/// @param inputs null where left out. @return nothing where the node is not understood or wrong.
std::optional<OnnxConstant> fold(const OnnxNode& node, const std::vector<const OnnxConstant*>& inputs);

}  // namespace convoy
