// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "models/model.h"

namespace convoy {

/// Writes ONNX files through the protobuf classes of libonnx, for tests of the import.
class OnnxWriter {
 public:
  using Attribute =
      std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
  using Attributes = std::vector<std::pair<std::string, Attribute>>;

  explicit OnnxWriter(std::int64_t opset = 13);
  OnnxWriter(OnnxWriter&&) noexcept;
  ~OnnxWriter();

  /// -1: a size that is not fixed.
  std::string input(const std::string& name, const std::vector<std::int64_t>& dims);
  /// An initialiser; `data`: zeros are stored with it (else only its shape: its data is in another file).
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims, bool data = true);
  std::string integers(const std::vector<std::int64_t>& values, bool scalar = false);
  std::string number(float value);
  std::string numbers(const std::vector<float>& values);
  /// @return the name of its (first) output
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}, std::size_t outputs = 1,
                   const std::string& domain = {});
  void output(const std::string& name);

  std::string bytes() const;
  void save(const std::string& file) const;

 private:
  struct Proto;
  std::unique_ptr<Proto> proto_;
  int count_ = 0;
};

/// What an export for inference makes of a batch normalization that follows a convolution: nothing, or a bias
/// of the convolution, with names as PyTorch makes them up ("onnx::Conv_7") or another tool's ("fused_7").
enum class Folding : std::uint8_t { none, pytorch, other };

/// A model of the zoo as a training-mode export writes it, or one for inference.
OnnxWriter exported(const Model& model, std::int64_t batch, bool data, Folding folding = Folding::none);

}  // namespace convoy
