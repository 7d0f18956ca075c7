// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/costs/cost_model.h"
#include "strategies/pardnn/networks/moving_work.h"
#include "strategies/pardnn/networks/operation_tape.h"

namespace convoy::inline strategies {
namespace {

// None, a velocity, two moments.
constexpr std::array<double, 3> optimizer_states{0, 1, 2};

Work in_phase(Work work, Phase phase) {
  work.phase = phase;
  return work;
}

/// Gradient and parameter are read, the parameter is written, states are read and written.
Work optimizer_work(Optimizer optimizer, double parameters) {
  const double states = optimizer_states[static_cast<std::size_t>(optimizer)];
  return moving_work(KernelKind::update, Phase::update, 0, (3 + 2 * states) * parameters);
}

}  // namespace

NodeId OperationTape::emit_gradient(Value like, std::string name, Work work, std::vector<NodeId> inputs) {
  const bool variable = network_.nodes[like].is_variable;
  return emit({std::move(name), work, variable ? 0 : taken(like),
               variable ? network_.nodes[like].elements_fixed : 0, std::move(inputs)});
}

void OperationTape::contribute(Value to, NodeId gradient) {
  if (recorded_[to].differentiable) recorded_[to].gradients.push_back(gradient);
}

NodeId OperationTape::gradient_of(Value value) {
  const std::vector<NodeId> parts = recorded_[value].gradients;
  if (parts.size() == 1) return parts.front();
  const double per_sample = network_.nodes[value].elements_per_sample,
               fixed = network_.nodes[value].elements_fixed;
  const bool split = recorded_[value].rule == Rule::split;  // the pieces' gradients are put together
  const double reads = split ? 1 : static_cast<double>(parts.size());
  return emit({fmt::format("{}.{}", network_.nodes[value].name, split ? "gradient" : "gradient_sum"),
               moving_work(KernelKind::elementwise, Phase::data_gradient, (reads + 1) * per_sample,
                           (reads + 1) * fixed),
               per_sample, fixed, parts});
}

void OperationTape::backward_product(Value value, NodeId gradient) {
  const OperationNetwork::Node node = network_.nodes[value];
  // Inputs are listed by node, so that which of them is the matrix of weights is told by its kind: a
  // variable, or for two values of the samples it makes no difference.
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value input = node.inputs[i], other = node.inputs[node.inputs.size() - 1 - i];
    if (!recorded_[input].differentiable) continue;
    const bool variable = network_.nodes[input].is_variable;
    contribute(input,
               emit_gradient(input, fmt::format("{}.gradient_{}", node.name, i),
                             in_phase(node.work, variable ? Phase::weight_gradient : Phase::data_gradient),
                             {gradient, other}));
  }
}

void OperationTape::backward_elementwise(Value value, NodeId gradient) {
  const OperationNetwork::Node node = network_.nodes[value];
  const Rule rule = recorded_[value].rule;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value input = node.inputs[i];
    if (!recorded_[input].differentiable) continue;
    std::vector<NodeId> reads{gradient};
    double values =
        taken(input) + (rule == Rule::concat ? taken(input) : node.elements_per_sample);  // a slice
    if (rule == Rule::multiply) reads.push_back(node.inputs[node.inputs.size() - 1 - i]);
    if (rule == Rule::normalize)  // the scale's gradient sums up gradient times value, too
      for (const Value read : node.inputs)
        if (!network_.nodes[read].is_variable) reads.push_back(read);
    if (rule == Rule::function || rule == Rule::pool) reads.push_back(value);
    if (rule == Rule::pool) reads.push_back(input);
    for (std::size_t r = 1; r < reads.size(); ++r) values += taken(reads[r]);
    contribute(input,
               emit_gradient(input, fmt::format("{}.gradient_{}", node.name, i),
                             moving_work(node.work.kind, Phase::data_gradient, values, 0), std::move(reads)));
  }
}

void OperationTape::backward_of_sum(Value value, NodeId gradient) {
  const OperationNetwork::Node node = network_.nodes[value];
  for (const Value input : node.inputs)
    contribute(input, network_.nodes[input].is_variable
                          ? emit_gradient(input, node.name + ".bias_gradient",
                                          moving_work(KernelKind::elementwise, Phase::weight_gradient,
                                                      node.elements_per_sample, 0),
                                          {gradient})
                          : gradient);
}

void OperationTape::backward(Value value) {
  const Recorded& recorded = recorded_[value];
  const Value input = network_.nodes[value].inputs.empty() ? value : network_.nodes[value].inputs.front();
  if (recorded.rule == Rule::loss) {
    const double values = taken(value);
    contribute(input, emit_gradient(input, network_.nodes[value].name + ".gradient",
                                    moving_work(KernelKind::elementwise, Phase::data_gradient, 2 * values, 0),
                                    {value}));
    return;
  }
  if (recorded.gradients.empty() || recorded.rule == Rule::variable) return;
  const NodeId gradient = gradient_of(value);
  switch (recorded.rule) {
    case Rule::product:
      return backward_product(value, gradient);
    case Rule::pass:
    case Rule::bias:
      return backward_of_sum(value, gradient);
    case Rule::lookup:  // rows of the table: a sparse gradient
    case Rule::split:
      return contribute(input, gradient);
    default:
      return backward_elementwise(value, gradient);
  }
}

void OperationTape::update_variables(bool clip) {
  std::vector<std::pair<Value, NodeId>> gradients;
  for (Value value = 0; value < recorded_.size(); ++value)
    if (recorded_[value].rule == Rule::variable && !recorded_[value].gradients.empty())
      gradients.emplace_back(value, gradient_of(value));
  if (clip) {
    std::vector<NodeId> norms;
    const auto scan = [&](NodeId gradient, double times) {
      const OperationNetwork::Node& node = network_.nodes[gradient];
      return moving_work(KernelKind::elementwise, Phase::update, times * node.elements_per_sample,
                         times * node.elements_fixed);
    };
    for (const auto& [value, gradient] : gradients)
      norms.push_back(emit({network_.nodes[value].name + ".norm", scan(gradient, 1), 0, 1, {gradient}}));
    const auto terms = static_cast<double>(norms.size());
    const NodeId norm =
        emit({"global_norm", moving_work(KernelKind::elementwise, Phase::update, 0, terms), 0, 1, norms});
    for (auto& [value, gradient] : gradients) {
      const double per_sample = network_.nodes[gradient].elements_per_sample;
      const double fixed = network_.nodes[gradient].elements_fixed;
      gradient = emit(
          {network_.nodes[value].name + ".clipped", scan(gradient, 2), per_sample, fixed, {gradient, norm}});
    }
  }
  for (const auto& [value, gradient] : gradients)
    emit({network_.nodes[value].name + ".update",
          optimizer_work(network_.optimizer, network_.nodes[value].elements_fixed),
          0,
          0,
          {value, gradient}});
}

OperationNetwork OperationTape::differentiate(Optimizer optimizer, bool clip) && {
  network_.optimizer = optimizer;
  for (auto value = static_cast<Value>(recorded_.size()); value-- > 0;) backward(value);
  update_variables(clip);
  return std::move(network_);
}

Dag operation_network_dag(const OperationNetwork& network, double batch, const Software& software,
                          const DeviceType& device) {
  const double states = optimizer_states[static_cast<std::size_t>(network.optimizer)];
  std::vector<Dag::Node> nodes;
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId id = 0; id < network.nodes.size(); ++id) {
    const OperationNetwork::Node& node = network.nodes[id];
    const double output_bytes =
        network_value_bytes * (node.elements_per_sample * batch + node.elements_fixed);
    if (node.is_variable)
      nodes.push_back({0, output_bytes, (1 + states) * network_value_bytes * node.elements_fixed});
    else
      nodes.push_back({1e6 * operation_time_s(node.work, batch, software, device), output_bytes, 0});
    for (const NodeId input : node.inputs) edges.emplace_back(input, id);
  }
  return Dag(std::move(nodes), edges);
}

}  // namespace convoy::strategies
