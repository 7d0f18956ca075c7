// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/onnx/onnx_dims.h"
#include "models/onnx/onnx_graph.h"

namespace convoy::inline models {

/// What a name in the graph stands for: a constant (a weight, whose values may be unknown, or a small tensor
/// of known values) or, where the import says so, a result of the network.
struct OnnxConstant {
  OnnxDims dims;
  std::optional<std::vector<double>> values;
  bool is_float = false;
  std::int64_t count() const;  ///< of values, at most 2^53
};

/// Evaluates a node all of whose inputs are constants. Values are computed for the operators that shapes are
/// computed with, as long as they are few; otherwise the result has a shape only.
/// @param inputs null where left out. @return nothing where the node is not understood or wrong.
std::optional<OnnxConstant> fold(const OnnxNode& node, const std::vector<const OnnxConstant*>& inputs);

}  // namespace convoy::models
