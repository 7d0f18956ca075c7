// SPDX-License-Identifier: MIT
#include "models/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/autocast.h"
#include "models/frozen.h"
#include "models/segments.h"
#include "models/static_plan.h"
#include "models/token_order.h"
#include "models/training_graph_builder.h"
#include "models/unfused_work.h"

namespace convoy::inline models {

TrainingGraphBuilder::TrainingGraphBuilder(const Model& model, const TrainingOptions& options)
    : element_(element_bytes(options.precision)), framework_(framework_memory(options.framework)) {
  graph_.model = model;
  graph_.options = options;
  graph_.options.on_tokens = computes_on_tokens(model);
  const std::size_t n = model.layers.size();
  readers_.resize(n);
  needs_gradient_.resize(n);
  forward_.resize(n);
  weight_gradient_.resize(n);
  first_weight_gradient_.resize(n);
  storage_.resize(n);
  extra_.resize(n);
  single_ = single_precision_outputs(model, options.framework, options.precision);
  held_bytes_ = held_bytes_a_value(model, options.framework, options.precision);
  gradient_.resize(n);
  sums_.resize(n);
  costs_.reserve(n);
  rules_.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    costs_.push_back(layer_costs(model, i, options.framework));
    if (options.execution != ExecutionMode::compiled)
      add_unfused_work(costs_.back(), model, i, options.framework, options.execution, options.precision);
    add_single_precision(costs_.back(), model, i, single_, options.framework, options.precision,
                         options.execution != ExecutionMode::compiled);
    rules_.push_back(memory_rules(model, i, options.framework));
    for (const LayerIndex input : model.layers[i].inputs)
      if (input != image_input) ++readers_[at(input)];
  }
  graph_.operations.reserve(5 * n);
  graph_.buffers.reserve(4 * n);
}

TrainingGraph TrainingGraphBuilder::build() {
  const std::size_t n = graph_.model.layers.size();
  for (std::size_t i = 0; i < n; ++i) forward(i);
  first_forward_ = forward_;
  forward_count_ = static_cast<OpId>(graph_.operations.size());
  std::vector<std::size_t> segments = segment_layers();
  for (std::size_t i = 0; i < n; ++i)
    if (readers_[i] == 0) loss_forward(i);
  for (std::size_t i = n; i-- > 0;)
    if (readers_[i] == 0) seed_gradient(i);
  for (std::size_t end = n; end > 0; end = segments.back(), segments.pop_back()) {
    if (end < n) forward_again(segments.back(), end);
    for (std::size_t i = end; i-- > segments.back();)
      if (needs_gradient_[i]) backward(i);
  }
  for (std::size_t i = 0; i < n; ++i) update(i);
  share_out_update_kernels();
  if (framework_.static_plan) add_plan();
  for (Buffer& buffer : graph_.buffers) {
    std::sort(buffer.uses.begin(), buffer.uses.end());
    buffer.uses.erase(std::unique(buffer.uses.begin(), buffer.uses.end()), buffer.uses.end());
  }
  std::stable_sort(graph_.buffers.begin(), graph_.buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.born < b.born; });
  return std::move(graph_);
}

OpId TrainingGraphBuilder::add_operation(std::string name, std::size_t i, OperationPart part,
                                         const Work& work, std::vector<OpId> inputs) {
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  const auto id = static_cast<OpId>(graph_.operations.size());
  graph_.operations.push_back(
      {std::move(name), static_cast<std::uint32_t>(i), work.phase, work, std::move(inputs)});
  graph_.operations.back().again = again_;
  graph_.operations.back().part = part;
  return id;
}

OpId TrainingGraphBuilder::add_kernel(std::size_t i, const KernelCost& cost, Phase phase,
                                      std::vector<OpId> inputs) {
  const Work work = layer_work(graph_.model, i, costs_[i].kernel, cost, phase, graph_.options.precision);
  const OpId op =
      add_operation(fmt::format("{}.{}{}", layer(i).name, to_string(phase), again_ ? " again" : ""), i,
                    OperationPart::layer,
                    again_ ? work_again(work, layer(i), graph_.options.execution) : work, std::move(inputs));
  add_workspace(i, op);
  return op;
}

void TrainingGraphBuilder::add_workspace(std::size_t i, OpId op) {
  constexpr std::int64_t fewest_channels = 512, tile = 4, transformed = 36;
  const auto* conv = std::get_if<Conv2d>(&layer(i).kind);
  const Work& work = graph_.operations[op].work;
  if (!framework_.winograd || graph_.options.precision != Precision::fp32 || !conv ||
      conv->kernel != Size2{3, 3} || conv->stride != Size2{} || conv->dilation != Size2{} ||
      conv->groups != 1 || std::min(work.in_channels, work.out_channels) < fewest_channels)
    return;
  const std::int64_t tiles = (work.out_h + tile - 1) / tile * ((work.out_w + tile - 1) / tile);
  add_scratch(graph_.operations[op].name + ".workspace", MemoryClass::workspace,
              static_cast<double>(4 * transformed * tiles * (work.in_channels + work.out_channels)),
              static_cast<double>(4 * transformed * work.in_channels * work.out_channels), op);
}

void TrainingGraphBuilder::add_plan() {
  const auto backward_end = std::find_if(graph_.operations.begin(), graph_.operations.end(),
                                         [](const Operation& op) { return op.phase == Phase::update; });
  if (backward_end == graph_.operations.begin()) return;
  const auto last = static_cast<OpId>(backward_end - graph_.operations.begin() - 1);
  const BufferId plan = add_buffer("memory plan", planned_bytes(graph_) - live_bytes(graph_), 0);
  graph_.buffers[plan].memory_class = MemoryClass::workspace;
  use(plan, last);
}

TrainingGraphBuilder::BufferId TrainingGraphBuilder::add_buffer(std::string name, double bytes, OpId born,
                                                                BufferRole role, std::uint32_t layer) {
  graph_.buffers.push_back(
      {std::move(name), MemoryClass::activations, bytes, 0, born, born, false, {born}, role, layer});
  return static_cast<BufferId>(graph_.buffers.size() - 1);
}

TrainingGraphBuilder::BufferId TrainingGraphBuilder::add_output(std::size_t i, OpId born) {
  return add_buffer(layer(i).name + ".output",
                    held_bytes_[i] * static_cast<double>(elements(layer(i).output)), born, BufferRole::output,
                    static_cast<std::uint32_t>(i));
}

TrainingGraphBuilder::BufferId TrainingGraphBuilder::add_output_gradient(std::size_t i, OpId born) {
  return add_buffer(layer(i).name + ".output_gradient", moved_bytes(i), born, BufferRole::output_gradient,
                    static_cast<std::uint32_t>(i));
}

void TrainingGraphBuilder::add_scratch(std::string name, MemoryClass memory_class, double bytes,
                                       double bytes_fixed, OpId op, BufferRole role) {
  graph_.buffers.push_back({std::move(name),
                            memory_class,
                            bytes,
                            static_cast<std::int64_t>(bytes_fixed),
                            op,
                            op,
                            false,
                            {op},
                            role,
                            graph_.operations[op].layer});
}

void TrainingGraphBuilder::forward(std::size_t i) {
  const std::vector<LayerIndex>& inputs = layer(i).inputs;
  bool needs = layer(i).trains() || std::holds_alternative<Custom>(layer(i).kind);
  std::vector<OpId> producers;
  for (const LayerIndex input : inputs) {
    if (input == image_input) continue;
    needs = needs || needs_gradient_[at(input)];
    if (forward_[at(input)]) producers.push_back(*forward_[at(input)]);
  }
  needs_gradient_[i] = needs;
  if (rules_[i].view) {
    forward_[i] = producers.empty() ? std::nullopt : std::optional(producers.front());
    storage_[i] = storage_of(inputs.front());
    if (storage_[i]) storage_[i]->exclusive &= readers_[i] <= 1;
    return;
  }
  const OpId op = add_kernel(i, *costs_[i].forward, Phase::forward, std::move(producers));
  forward_[i] = op;
  for (const LayerIndex input : inputs) {
    const BufferId buffer = input_buffer(input, op);
    again_ ? use_saved(buffer, op) : use(buffer, op);
  }
  const std::optional<Storage> input = storage_of(inputs.front());
  if (rules_[i].overwrites && inputs.front() != image_input && input && input->exclusive &&
      !input->output_needed) {
    storage_[i] = Storage{input->buffer, readers_[i] <= 1, rules_[i].output_for_data};
    if (!again_) overwritten_.emplace_back(op, input->buffer);
  } else {
    storage_[i] = Storage{add_output(i, op), readers_[i] <= 1, rules_[i].output_for_data};
  }
  if (needs && !rules_[i].extra.empty() && costs_[i].data_gradient)
    extra_[i] = add_buffer(fmt::format("{}.{}", layer(i).name, rules_[i].extra),
                           rules_[i].extra_bytes + (element_ < 4 ? rules_[i].extra_cast_bytes : 0), op);
}

TrainingGraphBuilder::BufferId TrainingGraphBuilder::input_buffer(LayerIndex input, OpId op) {
  if (const std::optional<Storage> storage = storage_of(input)) return storage->buffer;
  if (!image_) image_ = add_buffer("input", bytes_of(graph_.model.input), op, BufferRole::image);
  return *image_;
}

std::vector<std::size_t> TrainingGraphBuilder::segment_layers() const {
  ForwardPass pass{graph_.operations, graph_.buffers, std::vector<char>(graph_.buffers.size(), 0),
                   std::vector<std::uint32_t>(forward_count_, ForwardPass::no_buffer)};
  if (image_) pass.is_image[*image_] = 1;
  for (const auto& [op, buffer] : overwritten_) pass.overwrites[op] = buffer;
  std::vector<std::size_t> layers{0};
  for (const OpId op : segment_begins(pass, graph_.options.recompute))
    layers.push_back(graph_.operations[op].layer);
  return layers;
}

void TrainingGraphBuilder::forward_again(std::size_t begin, std::size_t end) {
  std::size_t stop = end;
  while (stop > begin && !needed_again(stop - 1, end)) --stop;
  again_ = true;
  for (std::size_t i = begin; i < stop; ++i) forward(i);
  again_ = false;
}

bool TrainingGraphBuilder::needed_again(std::size_t i, std::size_t end) const {
  if (needs_gradient_[i] && costs_[i].data_gradient && gradient_goes_on(i) &&
      (rules_[i].output_for_data || !rules_[i].extra.empty()))
    return true;
  for (std::size_t reader = i + 1; reader < end; ++reader) {
    const std::vector<LayerIndex>& inputs = layer(reader).inputs;
    if (std::find(inputs.begin(), inputs.end(), static_cast<LayerIndex>(i)) == inputs.end()) continue;
    if (rules_[reader].view && needed_again(reader, end)) return true;
    if (!needs_gradient_[reader]) continue;
    if (rules_[reader].input_for_weights && costs_[reader].weight_gradient) return true;
    if (rules_[reader].input_for_data && costs_[reader].data_gradient && gradient_goes_on(reader))
      return true;
  }
  return false;
}

double TrainingGraph::gradient_bytes() const {
  double count = 0;
  for (const Parameter& parameter : parameters) count += static_cast<double>(parameter.elements);
  return count * element_bytes(options.precision);
}

StateBytes TrainingGraph::resident_bytes() const {
  StateBytes bytes = convoy::resident_bytes(gradient_bytes() / element_bytes(options.precision), options);
  double frozen = 0;
  for (const Layer& layer : model.layers) frozen += frozen_elements(layer);
  bytes[static_cast<std::size_t>(MemoryClass::weights)] += frozen_bytes(frozen, options);
  return bytes;
}

double frozen_elements(const Layer& layer) {
  return layer.frozen ? static_cast<double>(layer.parameter_elements()) : 0;
}

double frozen_bytes(double elements, const TrainingOptions& options) {
  return resident_bytes(elements, options)[static_cast<std::size_t>(MemoryClass::weights)];
}

StateBytes without_optimizer(StateBytes bytes) {
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] = 0;
  return bytes;
}

StateBytes resident_bytes(double elements, const TrainingOptions& options) {
  static constexpr std::array<double, 3> optimizer_bytes{
      0, 4, 8};  // fp32 state a parameter: none, velocity, two moments
  const double element = element_bytes(options.precision);
  std::array<double, memory_class_count> bytes{};
  const int copies = 1 + framework_memory(options.framework).copies_of_weights;
  bytes[static_cast<std::size_t>(MemoryClass::weights)] =
      (element < 4 ? copies * element + 4 : copies * element) * elements;
  bytes[static_cast<std::size_t>(MemoryClass::gradients)] = element * elements;
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] =
      optimizer_bytes[static_cast<std::size_t>(options.optimizer)] * elements;
  return bytes;
}

TrainingGraph build_training_graph(const Model& model, const TrainingOptions& options) {
  return TrainingGraphBuilder(model, options).build();
}

double saved_activation_bytes(const TrainingGraph& graph) {
  double bytes = 0;
  for (const Buffer& buffer : graph.buffers)
    if (buffer.saved) bytes += buffer.bytes_per_image;
  return bytes;
}

}  // namespace convoy::models
