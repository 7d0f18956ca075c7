// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline models {

// An ONNX file as plain values: what the import needs of onnx.proto (github.com/onnx/onnx), and no more.

/// An initialiser or a constant. Weights are known by their shape alone.
struct OnnxTensor {
  static constexpr std::size_t max_values = 4096;  ///< what shapes, scales and paddings need

  std::string name;
  std::vector<std::int64_t> dims;
  bool is_float = false;
  std::optional<std::vector<double>> values;  ///< of small tensors whose data is in the file
};

struct OnnxAttribute {
  std::string name;
  std::optional<double> number;  ///< `f` or `i`
  std::vector<double> numbers;   ///< `floats` or `ints`
  std::string text;
  std::optional<OnnxTensor> tensor;
};

struct OnnxNode {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;  ///< "": left out
  std::vector<OnnxAttribute> attributes;

  const OnnxAttribute* find(std::string_view attribute) const;
  double number_or(std::string_view attribute, double fallback) const;
  std::string_view text_or(std::string_view attribute, std::string_view fallback) const;
  /// Empty where absent.
  std::vector<std::int64_t> integers(std::string_view attribute) const;
};

/// An input, output or intermediate result with its shape; -1 stands for a size that is not fixed.
struct OnnxValueInfo {
  std::string name;
  std::optional<std::vector<std::int64_t>> dims;
};

struct OnnxGraph {
  std::int64_t opset = 0;  ///< of the operators of ONNX itself
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initialisers;
  std::vector<OnnxValueInfo> inputs, outputs, values;
};

/// Whole number nearest to zero, at most 2^53 in size; ONNX writes "to the end" as the largest int64.
std::int64_t to_integer(double value);

/// Reads a file. Memory is bounded whatever it says: data of large tensors is skipped.
/// @throws InputError: not a file, cut off, not ONNX, more than 100,000 nodes.
OnnxGraph load_onnx(const std::string& file);
/// The same of bytes in memory; `file` is for messages.
OnnxGraph parse_onnx(std::string_view bytes, const std::string& file);

}  // namespace convoy::models
