// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/model.h"
#include "models/onnx/onnx_constants.h"
#include "models/onnx/onnx_graph.h"

namespace convoy::inline models {

struct OnnxOptions {
  std::optional<Shape> input;      ///< one image; needed where the file leaves its size open
  bool cross_entropy_loss = true;  ///< a softmax that ends the network is then the loss's
  /// Batch normalization that the export folded into convolutions is put back, with a warning.
  bool restore_batch_norm = true;
};

/// The training model of an ONNX graph (docs/models.md). Operators without a meaning here become elementwise
/// layers, with a warning that names them. @param file for messages
/// @throws InputError
Model import_onnx(OnnxGraph graph, const std::string& file, const OnnxOptions& options);

/// What a name stands for while a graph is imported.
struct OnnxValue : OnnxConstant {
  static constexpr LayerIndex none = -2;
  LayerIndex layer = none;   ///< of a result of the network; image_input is the image
  bool permuted = false;     ///< a transposed view: a reshape of it copies
  bool zero_border = false;  ///< of a layer that adds zeros around an image, as many on opposite sides
  std::string weight;        ///< of a constant: uses under one name share their parameters
  bool is_result() const { return layer != none; }
};

/// The import under way, as the converters of operators see it.
class OnnxImport {
 public:
  OnnxImport(OnnxGraph graph, std::string file, const OnnxOptions& options);
  Model run();

  [[noreturn]] void fail(const OnnxNode& node, const std::string& message) const;

  const OnnxValue* find(const OnnxNode& node, std::size_t input) const;    ///< null where left out
  const OnnxValue& value(const OnnxNode& node, std::size_t input) const;   ///< fails where left out
  const OnnxValue& result(const OnnxNode& node, std::size_t input) const;  ///< fails where a constant
  const OnnxValue& weight(const OnnxNode& node, std::size_t input) const;  ///< fails where no constant
  const OnnxValue& layer_value(const OnnxNode& node) const { return result(node, 0); }
  /// Of an attribute, or of an input where the node has that; fails where the network computes it.
  std::vector<std::int64_t> integers(const OnnxNode& node, std::string_view attribute,
                                     std::size_t input) const;
  /// How many nodes read it.
  std::size_t readers(const std::string& name) const;
  bool is_output(const std::string& name) const { return outputs_.count(name) > 0; }
  /// Whether batch normalization was folded into this convolution and is to be put back.
  bool lost_batch_norm(const OnnxNode& node) const {
    return !node.outputs.empty() && folded_.count(node.outputs[0]) > 0;
  }
  bool has_loss() const { return model_.cross_entropy_loss; }
  std::int64_t batch() const { return batch_; }
  Model& model() { return model_; }

  /// Shape of one image's part of a tensor: without the batch where that comes first, else in equal parts.
  Shape per_image(const OnnxNode& node, const OnnxDims& dims) const;

  /// Adds a layer. `weights`: the constants that its parameters are, in the order of its parameter tensors.
  LayerIndex emit(const OnnxNode& node, LayerKind kind, std::vector<LayerIndex> inputs,
                  const std::vector<const OnnxValue*>& weights = {}, std::string_view suffix = {});
  /// The output of a layer just added, [batch, output...].
  OnnxValue output_of(LayerIndex layer) const;
  /// The same values under other sizes; a layer only where the shape of an image changes.
  OnnxValue view(const OnnxNode& node, const OnnxValue& from, const OnnxDims& dims,
                 std::string_view suffix = {});
  void define(const OnnxNode& node, std::size_t output, OnnxValue value);
  /// One elementwise layer of all of the node's inputs, with the output of these sizes.
  void elementwise(const OnnxNode& node, const OnnxDims& dims, bool keeps_inputs);
  void unknown(const OnnxNode& node);

 private:
  void read_constants();
  void read_image();
  std::set<std::string> weight_slots() const;
  void constant_node(const OnnxNode& node);
  void convert(const OnnxNode& node);
  std::string name_of(const OnnxNode& node, const std::vector<const OnnxValue*>& weights,
                      std::string_view suffix);
  void keep_what_outputs_need();

  OnnxGraph graph_;
  std::string file_;
  OnnxOptions options_;
  Model model_;
  std::int64_t batch_ = 1, parameters_ = 0, macs_ = 0;
  std::size_t kept_values_ = 0;
  std::unordered_map<std::string, OnnxValue> values_;
  std::unordered_map<std::string, std::size_t> readers_;
  std::unordered_map<std::string, OnnxDims> stated_;  // shapes that the file states
  std::map<std::string, bool> outputs_;
  std::map<std::string, LayerIndex> weights_used_;  ///< by name: the first layer that has it
  std::unordered_map<std::string, int> names_;
  std::map<std::string, int> unknown_;
  std::set<std::string> folded_;  ///< outputs of convolutions that lost their batch normalization
};

/// Converts a node of the network. @return false where there is no rule for its operator.
bool convert_onnx_compute(OnnxImport& import, const OnnxNode& node);     ///< onnx_compute.cpp
bool convert_onnx_arithmetic(OnnxImport& import, const OnnxNode& node);  ///< onnx_arithmetic.cpp
bool convert_onnx_view(OnnxImport& import, const OnnxNode& node);        ///< onnx_views.cpp
bool convert_onnx_size(OnnxImport& import, const OnnxNode& node);        ///< onnx_sizes.cpp

/// First outputs of the convolutions that an export for inference folded batch normalization into
/// (onnx_batch_norm.cpp): those whose weights and biases have names that the exporter made up; where names
/// tell nothing, all of a residual network whose convolutions all have a bias and that normalizes nowhere,
/// but for those of squeeze-and-excitation. Networks that train without normalization (VGG, AlexNet,
/// SqueezeNet) are neither.
std::set<std::string> folded_convolutions(const OnnxGraph& graph);

/// A name as messages show it, cut where it is long.
std::string shortened(const std::string& name);

/// Replaces groups of nodes by the one operator they spell out: SiLU, hardswish, hardsigmoid, GELU, layer
/// normalization.
void fuse_onnx_patterns(OnnxGraph& graph);

}  // namespace convoy::models
