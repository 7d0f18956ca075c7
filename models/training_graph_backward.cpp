// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/training_graph_builder.h"

namespace convoy::inline models {

Work TrainingGraphBuilder::loss_work(std::size_t i, Phase phase) const {
  // Log-softmax (maximum, difference, exponential, sum, difference: 5 a class) and one pick; backward:
  // exponential, difference, product. Log probabilities stay fp32 in every precision.
  const double classes = static_cast<double>(elements(layer(i).output));
  Work work;
  work.kind = KernelKind::softmax_loss;
  work.phase = phase;
  work.flops_per_image = (phase == Phase::forward ? 5 : 3) * classes;
  work.bytes_per_image = (element_ + 4) * classes;
  return work;
}

void TrainingGraphBuilder::loss_forward(std::size_t i) {
  if (!graph_.model.cross_entropy_loss || !needs_gradient_[i]) return;
  std::vector<OpId> inputs;
  if (forward_[i]) inputs.push_back(*forward_[i]);
  const OpId op = add_operation(layer(i).name + ".loss.forward", i, OperationPart::loss,
                                loss_work(i, Phase::forward), inputs);
  if (storage_[i]) use(storage_[i]->buffer, op);
  losses_.emplace_back(op, add_buffer(layer(i).name + ".log_probabilities",
                                      4 * static_cast<double>(elements(layer(i).output)), op));
}

void TrainingGraphBuilder::seed_gradient(std::size_t i) {
  if (!needs_gradient_[i]) return;
  if (!graph_.model.cross_entropy_loss) {
    gradient_[i] = Gradient{*forward_[i], std::nullopt, false};
    return;
  }
  const auto [loss, log_probabilities] = losses_.back();
  losses_.pop_back();
  const std::string name = layer(i).name + ".loss.data_gradient";
  const OpId op = add_operation(name, i, OperationPart::loss, loss_work(i, Phase::data_gradient), {loss});
  use(log_probabilities, op);
  gradient_[i] = Gradient{op, add_output_gradient(i, op), true};
}

void TrainingGraphBuilder::backward(std::size_t i) {
  const Gradient gradient = *gradient_[i];
  if (!costs_[i].data_gradient) {
    for (const LayerIndex input : layer(i).inputs)
      if (receives_gradient(input)) contribute(i, input, {gradient.op, gradient.buffer, false}, false);
  } else if (gradient_goes_on(i)) {
    data_gradient(i, gradient, std::holds_alternative<Custom>(layer(i).kind));
  }
  if (costs_[i].weight_gradient) weight_gradient(i, gradient);
}

bool TrainingGraphBuilder::gradient_goes_on(std::size_t i) const {
  return std::holds_alternative<Custom>(layer(i).kind) ||
         std::any_of(layer(i).inputs.begin(), layer(i).inputs.end(),
                     [&](LayerIndex input) { return receives_gradient(input); });
}

void TrainingGraphBuilder::data_gradient(std::size_t i, const Gradient& gradient, bool custom) {
  std::vector<OpId> inputs{gradient.op};
  for (const LayerIndex input : layer(i).inputs) {
    if (rules_[i].input_for_data && input != image_input && forward_[at(input)])
      inputs.push_back(*forward_[at(input)]);
    if (custom && receives_gradient(input) && gradient_[at(input)])
      inputs.push_back(gradient_[at(input)]->op);
  }
  if (rules_[i].output_for_data || extra_[i]) inputs.push_back(*forward_[i]);
  const OpId op = add_kernel(i, *costs_[i].data_gradient, Phase::data_gradient, std::move(inputs));
  if (gradient.buffer) use(*gradient.buffer, op);
  if (rules_[i].input_for_data)
    for (const LayerIndex input : layer(i).inputs) use_saved(input_buffer(input, op), op);
  if (rules_[i].output_for_data) use_saved(storage_[i]->buffer, op);
  if (extra_[i]) use_saved(*extra_[i], op);
  if (rules_[i].gradient_overwrites && gradient.own && gradient.buffer && layer(i).inputs.size() == 1) {
    if (receives_gradient(layer(i).inputs.front()))
      contribute(i, layer(i).inputs.front(), {op, gradient.buffer, true}, custom);
    return;
  }
  for (const LayerIndex input : layer(i).inputs) {
    if (!receives_gradient(input)) continue;
    contribute(i, input, {op, add_output_gradient(at(input), op), true}, custom);
  }
}

void TrainingGraphBuilder::weight_gradient(std::size_t i, const Gradient& gradient) {
  std::vector<OpId> inputs{gradient.op};
  for (const LayerIndex input : layer(i).inputs)
    if (rules_[i].input_for_weights && input != image_input && forward_[at(input)])
      inputs.push_back(*forward_[at(input)]);
  const std::size_t owner = graph_.model.parameter_owner(i);
  const std::optional<OpId> before = weight_gradient_[owner];
  if (before) inputs.push_back(*before);
  const OpId op = add_kernel(i, *costs_[i].weight_gradient, Phase::weight_gradient, std::move(inputs));
  weight_gradient_[owner] = op;
  if (!before) first_weight_gradient_[owner] = op;
  if (before) add_to_shared_gradient(i, op);
  if (framework_.gradients_aside || before)
    add_scratch(layer(i).name + ".parameter_gradient", MemoryClass::gradients, 0,
                element_ * static_cast<double>(layer(owner).parameter_elements()), op,
                BufferRole::parameter_gradient);
  if (gradient.buffer) use(*gradient.buffer, op);
  if (rules_[i].input_for_weights)
    for (const LayerIndex input : layer(i).inputs) use_saved(input_buffer(input, op), op);
}

void TrainingGraphBuilder::add_to_shared_gradient(std::size_t i, OpId op) {
  // autograd's input buffer (torch/csrc/autograd/input_buffer.cpp): one sum, of two tensors read and one written
  const auto elements = static_cast<double>(layer(i).parameter_elements() + layer(i).shared_elements);
  Work& work = graph_.operations[op].work;
  work.flops_fixed += elements;
  work.aside_bytes_fixed += 3 * element_ * elements;
  work.launches += 1;
}

void TrainingGraphBuilder::contribute(std::size_t reader, LayerIndex to, const Gradient& more,
                                      bool sum_is_free) {
  std::optional<Gradient>& total = gradient_[at(to)];
  if (!total) {
    total = more;
    return;
  }
  OpId op = more.op;
  if (!sum_is_free) {
    const int count = ++sums_[at(to)];
    Work work;
    work.kind = KernelKind::elementwise;
    work.phase = Phase::data_gradient;
    work.fusion = Fusion::chain;
    work.flops_per_image = static_cast<double>(elements(layer(at(to)).output));
    work.bytes_per_image = 3 * moved_bytes(at(to));
    const std::string name =
        layer(at(to)).name + ".gradient_sum" + (count > 1 ? fmt::format("{}", count) : "");
    op = add_operation(name, at(to), OperationPart::gradient_sum, work, {total->op, more.op});
    graph_.operations[op].reader = static_cast<std::uint32_t>(reader);
  }
  if (total->buffer) use(*total->buffer, op);
  if (more.buffer) use(*more.buffer, op);
  if (more.own)
    total = Gradient{op, more.buffer, true};
  else if (total->own)
    total->op = op;
  else
    total = Gradient{op, add_output_gradient(at(to), op), true};
}

void TrainingGraphBuilder::update(std::size_t i) {
  if (!layer(i).trains() || layer(i).shares()) return;
  const Work work = update_work(layer(i), graph_.options.precision, graph_.options.optimizer);
  const OpId op =
      add_operation(layer(i).name + ".update", i, OperationPart::layer, work, {*weight_gradient_[i]});
  const std::vector<ParameterTensor>& tensors = layer(i).parameters;
  for (std::uint32_t t = 0; t < tensors.size(); ++t)
    graph_.parameters.push_back({fmt::format("{}.{}", layer(i).name, to_string(tensors[t].role)),
                                 static_cast<std::uint32_t>(i), tensors[t].elements, *first_forward_[i],
                                 *weight_gradient_[i], op, t, *first_weight_gradient_[i]});
}

/// Gives each update its share of the kernels and passes of all of them. Layers that are given by their costs
/// have no update of their own.
void TrainingGraphBuilder::share_out_update_kernels() {
  /// Of an operation's launch overhead, which stands for one to three kernels (docs/cost_model.md).
  constexpr double kernels_an_overhead = 2;
  constexpr double state_bytes = 4;  // of a value of gradients, states and master weights
  const auto has_update = [](const Operation& op) {
    return op.phase == Phase::update && op.work.bytes_fixed > 0;
  };
  std::vector<std::int64_t> tensors;
  for (const Operation& op : graph_.operations)
    if (has_update(op))
      for (const ParameterTensor& tensor : layer(op.layer).parameters) tensors.push_back(tensor.elements);
  const TrainingOptions& options = graph_.options;
  const UpdateKernels kernels =
      update_kernels(options.framework, options.update_mode(), options.optimizer, tensors);
  const double more_bytes = state_bytes * (kernels.passes - fused_passes(options.optimizer));
  for (Operation& op : graph_.operations) {
    if (!has_update(op)) continue;
    const double share =
        static_cast<double>(layer(op.layer).parameters.size()) / static_cast<double>(tensors.size());
    op.work.launches = static_cast<float>(kernels.launches * share / kernels_an_overhead);
    op.work.traffic = static_cast<float>(
        1 + more_bytes * static_cast<double>(layer(op.layer).parameter_elements()) / op.work.bytes_fixed);
  }
}

}  // namespace convoy::models
