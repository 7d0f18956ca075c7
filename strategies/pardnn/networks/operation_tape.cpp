// SPDX-License-Identifier: MIT
#include "strategies/pardnn/networks/operation_tape.h"

#include <algorithm>
#include <utility>

#include "strategies/pardnn/networks/moving_work.h"

namespace convoy::inline strategies {
namespace {

/// A product's three kernels do the same work: two operands are read, the third is written.
/// @param fixed elements of the operand that all samples share
Work matrix_product(const OperationTape::ProductShape& shape, double per_sample, double fixed) {
  Work work;
  work.kind = KernelKind::matmul;
  work.flops_per_image = 2 * shape.rows * shape.in * shape.out;
  work.bytes_per_image = network_value_bytes * per_sample;
  work.bytes_fixed = network_value_bytes * fixed;
  work.in_channels = static_cast<std::int64_t>(shape.in);
  work.out_channels = static_cast<std::int64_t>(shape.out);
  work.out_h = static_cast<std::int64_t>(shape.rows);
  work.out_w = 1;
  return work;
}

/// Likewise.
Work convolving(const OperationTape::ConvolutionShape& shape, double per_sample, double fixed) {
  const double taps = static_cast<double>(shape.kernel_h) * shape.kernel_w;
  Work work = matrix_product({shape.height * shape.width, shape.in * taps, shape.out}, per_sample, fixed);
  work.kind = KernelKind::convolution;
  work.in_channels = static_cast<std::int64_t>(shape.in);
  work.out_h = static_cast<std::int64_t>(shape.height);
  work.out_w = static_cast<std::int64_t>(shape.width);
  work.kernel_h = shape.kernel_h;
  work.kernel_w = shape.kernel_w;
  work.stride = shape.stride;
  work.groups = 1;
  return work;
}

std::vector<NodeId> each_once(std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace

double OperationNetwork::parameters() const {
  double sum = 0;
  for (const Node& node : nodes)
    if (node.is_variable) sum += node.elements_fixed;
  return sum;
}

NodeId OperationTape::emit(OperationNetwork::Node node) {
  node.inputs = each_once(std::move(node.inputs));
  network_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(network_.nodes.size() - 1);
}

OperationTape::Value OperationTape::record(Rule rule, OperationNetwork::Node node) {
  const bool differentiable =
      rule == Rule::variable || std::any_of(node.inputs.begin(), node.inputs.end(),
                                            [&](Value v) { return recorded_[v].differentiable; });
  recorded_.push_back({rule, differentiable});
  return emit(std::move(node));
}

double OperationTape::taken(Value value) const {
  return network_.nodes[value].elements_per_sample / recorded_[value].pieces;
}

OperationTape::Value OperationTape::record_elementwise(Rule rule, std::string name,
                                                       const std::vector<Value>& inputs, double elements,
                                                       KernelKind kind) {
  double per_sample = elements, fixed = 0;
  for (const Value input : inputs) {
    per_sample += taken(input);
    fixed += network_.nodes[input].elements_fixed;
  }
  return record(rule,
                {std::move(name), moving_work(kind, Phase::forward, per_sample, fixed), elements, 0, inputs});
}

OperationTape::Value OperationTape::samples(std::string name, double elements) {
  return record(Rule::source, {std::move(name), {}, elements});
}

OperationTape::Value OperationTape::variable(std::string name, double elements) {
  return record(Rule::variable, {std::move(name), {}, 0, elements, {}, true});
}

OperationTape::Value OperationTape::lookup(std::string name, Value table, double elements) {
  return record(Rule::lookup, {std::move(name),
                               moving_work(KernelKind::elementwise, Phase::forward, 2 * elements, 0),
                               elements,
                               0,
                               {table}});
}

OperationTape::Value OperationTape::product(std::string name, Value x, Value weights,
                                            const ProductShape& shape) {
  const bool shared = network_.nodes[weights].is_variable;
  const double per_sample = shape.rows * (shape.in + shape.out) + (shared ? 0 : taken(weights));
  const Work work = matrix_product(shape, per_sample, shared ? shape.in * shape.out : 0);
  return record(Rule::product, {std::move(name), work, shape.rows * shape.out, 0, {x, weights}});
}

OperationTape::Value OperationTape::convolution(std::string name, Value x, Value weights,
                                                const ConvolutionShape& shape) {
  const double elements = shape.height * shape.width * shape.out;
  const Work work = convolving(shape, taken(x) + elements, network_.nodes[weights].elements_fixed);
  return record(Rule::product, {std::move(name), work, elements, 0, {x, weights}});
}

OperationTape::Value OperationTape::add_bias(std::string name, Value x, Value bias) {
  return record_elementwise(Rule::bias, std::move(name), {x, bias}, taken(x));
}

OperationTape::Value OperationTape::add(std::string name, const std::vector<Value>& values) {
  return record_elementwise(Rule::pass, std::move(name), values, taken(values.front()));
}

OperationTape::Value OperationTape::multiply(std::string name, Value a, Value b) {
  return record_elementwise(Rule::multiply, std::move(name), {a, b}, taken(a));
}

OperationTape::Value OperationTape::function(std::string name, Value x) {
  return record_elementwise(Rule::function, std::move(name), {x}, taken(x));
}

OperationTape::Value OperationTape::shift(std::string name, Value x) {
  return record_elementwise(Rule::pass, std::move(name), {x}, taken(x));
}

OperationTape::Value OperationTape::normalize(std::string name, Value x, Value scale) {
  return record_elementwise(Rule::normalize, std::move(name), {x, scale}, taken(x),
                            KernelKind::normalization);
}

OperationTape::Value OperationTape::max_pool(std::string name, Value x, double elements) {
  return record_elementwise(Rule::pool, std::move(name), {x}, elements, KernelKind::pooling);
}

OperationTape::Value OperationTape::average_pool(std::string name, Value x, double elements) {
  return record_elementwise(Rule::average, std::move(name), {x}, elements, KernelKind::pooling);
}

OperationTape::Value OperationTape::concat(std::string name, const std::vector<Value>& values) {
  double elements = 0;
  for (const Value value : values) elements += taken(value);
  return record_elementwise(Rule::concat, std::move(name), values, elements);
}

OperationTape::Value OperationTape::split(std::string name, Value x, int pieces) {
  const Value result = record_elementwise(Rule::split, std::move(name), {x}, taken(x));
  recorded_[result].pieces = pieces;
  return result;
}

void OperationTape::loss(std::string name, Value logits) {
  record_elementwise(Rule::loss, std::move(name), {logits}, taken(logits), KernelKind::softmax_loss);
}

}  // namespace convoy::strategies
