// SPDX-License-Identifier: MIT
// Batch normalization that an export folded into convolutions.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

bool is_one_of(const std::string& op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool is_biased(const OnnxNode& node) {
  return node.op == "Conv" && node.inputs.size() > 2 && !node.inputs[2].empty() && !node.outputs.empty();
}

/// PyTorch's exporter names a parameter of the module after it ("layer1.0.conv1.weight") and a tensor that it
/// computed itself after the node ("onnx::Conv_497").
bool is_generated(const std::string& name) { return name.find("::") != std::string::npos; }

/// Outputs of nodes that read one value a channel: squeeze-and-excitation, whose convolutions have biases of
/// their own.
std::set<std::string> pooled_values(const OnnxGraph& graph) {
  std::set<std::string> pooled;
  for (const OnnxNode& node : graph.nodes) {
    if (node.inputs.empty() || node.outputs.empty()) continue;
    const bool pools = is_one_of(node.op, {"GlobalAveragePool", "ReduceMean", "GlobalMaxPool"});
    const bool passes = is_one_of(node.op, {"Conv", "Relu", "Silu", "HardSwish", "Sigmoid", "HardSigmoid",
                                            "Clip", "Reshape", "Unsqueeze", "Dropout"});
    if (pools || (passes && pooled.count(node.inputs[0]) > 0)) pooled.insert(node.outputs[0]);
  }
  return pooled;
}

/// A residual network: the sum of a convolution's result and something else that the network computes.
bool has_residual_sum(const OnnxGraph& graph) {
  std::unordered_map<std::string, std::string_view> maker;
  for (const OnnxNode& node : graph.nodes)
    if (!node.outputs.empty()) maker[node.outputs[0]] = node.op;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const OnnxNode& node) {
    if (node.op != "Add" || node.inputs.size() != 2) return false;
    const auto a = maker.find(node.inputs[0]), b = maker.find(node.inputs[1]);
    return a != maker.end() && b != maker.end() && (a->second == "Conv" || b->second == "Conv");
  });
}

}  // namespace

std::set<std::string> folded_convolutions(const OnnxGraph& graph) {
  std::set<std::string> named, biased;
  bool normalizes = false, all_biased = true;
  const std::set<std::string> pooled = pooled_values(graph);
  for (const OnnxNode& node : graph.nodes) {
    normalizes = normalizes || is_one_of(node.op, {"BatchNormalization", "InstanceNormalization",
                                                   "GroupNormalization", "LayerNormalization", "LRN"});
    if (node.op == "Conv") all_biased = all_biased && is_biased(node);
    if (!is_biased(node)) continue;
    if (is_generated(node.inputs[1]) && is_generated(node.inputs[2])) named.insert(node.outputs[0]);
    if (pooled.count(node.inputs[0]) == 0) biased.insert(node.outputs[0]);
  }
  if (!named.empty()) return named;
  if (normalizes || !all_biased || !has_residual_sum(graph)) return {};
  return biased;
}

}  // namespace convoy::models
