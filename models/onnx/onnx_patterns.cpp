// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

/// Who makes and who reads what in a graph, while patterns are sought.
class Matcher {
 public:
  explicit Matcher(OnnxGraph& graph) : graph_(graph), gone_(graph.nodes.size()) {
    for (const OnnxTensor& tensor : graph.initialisers)
      if (tensor.values && tensor.values->size() == 1) constants_[tensor.name] = tensor.values->front();
    for (const OnnxValueInfo& output : graph.outputs) readers_[output.name].push_back(nowhere);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const OnnxNode& node = graph.nodes[i];
      for (const std::string& output : node.outputs) makers_.emplace(output, i);
      for (const std::string& input : node.inputs) readers_[input].push_back(i);
      if (node.op != "Constant" || node.outputs.empty()) continue;
      for (const OnnxAttribute& value : node.attributes) {
        if (value.tensor && value.tensor->values && value.tensor->values->size() == 1)
          constants_[node.outputs[0]] = value.tensor->values->front();
        if (value.number) constants_[node.outputs[0]] = *value.number;
      }
    }
  }

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::string& op = graph_.nodes[i].op;
      if (op == "Div" || op == "Mul") hard_sigmoid(i);
      if (op == "Erf") gelu(i);
      if (op == "Sqrt") layer_norm(i);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "Mul") gated(i);
    std::vector<OnnxNode> left;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (!gone_[i]) left.push_back(std::move(graph_.nodes[i]));
    graph_.nodes = std::move(left);
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  using At = std::optional<std::size_t>;

  const OnnxNode& node(std::size_t i) const { return graph_.nodes[i]; }
  const std::string& input(std::size_t i, std::size_t k) const {
    static const std::string none;
    return k < node(i).inputs.size() ? node(i).inputs[k] : none;
  }
  const std::string& output(std::size_t i) const {
    static const std::string none;
    return node(i).outputs.empty() ? none : node(i).outputs[0];
  }
  At maker(const std::string& name, std::string_view op) const {
    const auto it = makers_.find(name);
    return it != makers_.end() && !gone_[it->second] && node(it->second).op == op ? At(it->second)
                                                                                  : std::nullopt;
  }
  std::size_t reader_count(const std::string& name) const {
    const auto it = readers_.find(name);
    return it == readers_.end() ? 0 : it->second.size();
  }
  /// The only reader of a node's output, where that is of this operator.
  At reader(std::size_t i, std::string_view op) const {
    const auto it = readers_.find(output(i));
    if (it == readers_.end() || it->second.size() != 1 || it->second[0] == nowhere || gone_[it->second[0]] ||
        node(it->second[0]).op != op)
      return std::nullopt;
    return it->second[0];
  }
  bool is_constant(const std::string& name, double value) const {
    const auto it = constants_.find(name);
    return it != constants_.end() && std::abs(it->second - value) < 1e-3 * std::max(1.0, std::abs(value));
  }
  /// The operand of a commutative node beside a constant of this value.
  std::optional<std::string> beside(std::size_t i, double value) const {
    for (const std::size_t k : {0u, 1u})
      if (is_constant(input(i, 1 - k), value)) return input(i, k);
    return std::nullopt;
  }

  /// The last node of a pattern becomes the operator it spells out; the others go.
  void replace(std::size_t last, const char* op, std::vector<std::string> inputs,
               std::initializer_list<std::size_t> others) {
    OnnxNode& fused = graph_.nodes[last];
    fused.op = op;
    fused.inputs = std::move(inputs);
    fused.attributes.clear();
    for (const std::size_t other : others) gone_[other] = true;
  }

  /// relu6(x + 3) / 6, and x relu6(x + 3) / 6.
  void hard_sigmoid(std::size_t last) {
    const std::string* scaled = nullptr;
    if (node(last).op == "Div" && is_constant(input(last, 1), 6)) scaled = &input(last, 0);
    std::optional<std::string> by_product;
    if (node(last).op == "Mul" && (by_product = beside(last, 1.0 / 6))) scaled = &*by_product;
    if (!scaled || reader_count(*scaled) != 1) return;
    const At product = maker(*scaled, "Mul");
    for (const std::size_t k : {0u, 1u}) {
      const At clip = product  ? maker(input(*product, k), "Clip")
                      : k == 0 ? maker(*scaled, "Clip")
                               : std::nullopt;
      if (!clip || !is_relu6(*clip) || reader_count(output(*clip)) != 1) continue;
      const At sum = maker(input(*clip, 0), "Add");
      const std::optional<std::string> x = sum ? beside(*sum, 3) : std::nullopt;
      if (!x || reader_count(output(*sum)) != 1) continue;
      if (product && input(*product, 1 - k) != *x) continue;
      if (product) return replace(last, "HardSwish", {*x}, {*product, *clip, *sum});
      return replace(last, "HardSigmoid", {*x}, {*clip, *sum});
    }
  }

  bool is_relu6(std::size_t clip) const {
    const bool by_inputs = is_constant(input(clip, 1), 0) && is_constant(input(clip, 2), 6);
    return by_inputs || (node(clip).inputs.size() == 1 && node(clip).number_or("min", 1) == 0 &&
                         node(clip).number_or("max", 0) == 6);
  }

  /// x sigmoid(x), x hardsigmoid(x).
  void gated(std::size_t product) {
    for (const std::size_t k : {0u, 1u})
      for (const auto& [gate, fused] :
           {std::pair{"Sigmoid", "Silu"}, std::pair{"HardSigmoid", "HardSwish"}}) {
        const At found = maker(input(product, k), gate);
        if (!found || reader_count(output(*found)) != 1 || input(*found, 0) != input(product, 1 - k))
          continue;
        return replace(product, fused, {input(*found, 0)}, {*found});
      }
  }

  /// 0.5 x (1 + erf(x / sqrt 2)), the half before or after.
  void gelu(std::size_t erf) {
    At scaled = maker(input(erf, 0), "Div");
    std::optional<std::string> x;
    if (scaled && is_constant(input(*scaled, 1), std::sqrt(2.0))) x = input(*scaled, 0);
    if (!scaled && (scaled = maker(input(erf, 0), "Mul"))) x = beside(*scaled, std::sqrt(0.5));
    const At sum = x ? reader(erf, "Add") : std::nullopt;
    const At product = sum && beside(*sum, 1) ? reader(*sum, "Mul") : std::nullopt;
    if (!product || reader_count(output(*scaled)) != 1) return;
    const std::string& other = input(*product, input(*product, 0) == output(*sum) ? 1 : 0);
    if (other == *x) {
      const At half = reader(*product, "Mul");
      if (half && beside(*half, 0.5)) replace(*half, "Gelu", {*x}, {*scaled, erf, *sum, *product});
    } else if (const At half = maker(other, "Mul");
               half && beside(*half, 0.5) == x && reader_count(other) == 1) {
      replace(*product, "Gelu", {*x}, {*scaled, erf, *sum, *half});
    }
  }

  bool is_mean_of_last_axis(std::size_t mean) const {
    const std::vector<std::int64_t> axes = node(mean).integers("axes");
    return (axes == std::vector<std::int64_t>{-1}) || is_constant(input(mean, 1), -1);
  }

  /// d = x - mean(x); d / sqrt(mean(d^2) + e), and w and b after it where there are.
  void layer_norm(std::size_t root) {
    const At sum = maker(input(root, 0), "Add"), quotient = reader(root, "Div");
    if (!sum || !quotient) return;
    At variance = maker(input(*sum, 0), "ReduceMean");
    if (!variance) variance = maker(input(*sum, 1), "ReduceMean");
    if (!variance || !is_mean_of_last_axis(*variance)) return;
    const At square = maker(input(*variance, 0), "Pow");
    if (!square || !is_constant(input(*square, 1), 2)) return;
    const At minus = maker(input(*square, 0), "Sub");
    if (!minus || input(*quotient, 0) != output(*minus) || reader_count(output(*minus)) != 2) return;
    const At mean = maker(input(*minus, 1), "ReduceMean");
    if (!mean || !is_mean_of_last_axis(*mean) || input(*mean, 0) != input(*minus, 0)) return;
    for (const std::size_t inner : {*mean, *square, *variance, *sum})
      if (reader_count(output(inner)) != 1) return;
    const std::string x = input(*mean, 0);
    const At scale = reader(*quotient, "Mul");
    const At shift = scale ? reader(*scale, "Add") : std::nullopt;
    if (!shift)
      return replace(*quotient, "LayerNormalization", {x}, {*mean, *minus, *square, *variance, *sum, root});
    const std::string w = input(*scale, input(*scale, 0) == output(*quotient) ? 1 : 0);
    const std::string b = input(*shift, input(*shift, 0) == output(*scale) ? 1 : 0);
    replace(*shift, "LayerNormalization", {x, w, b},
            {*mean, *minus, *square, *variance, *sum, root, *quotient, *scale});
  }

  OnnxGraph& graph_;
  std::vector<bool> gone_;
  std::unordered_map<std::string, double> constants_;
  std::unordered_map<std::string, std::size_t> makers_;
  std::unordered_map<std::string, std::vector<std::size_t>> readers_;
};

}  // namespace

void fuse_onnx_patterns(OnnxGraph& graph) { Matcher(graph).run(); }

}  // namespace convoy::models
