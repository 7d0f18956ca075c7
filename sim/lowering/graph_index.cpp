// SPDX-License-Identifier: MIT
#include "sim/lowering/graph_index.h"

#include <algorithm>

namespace convoy::inline lowering {

GraphIndex::GraphIndex(const TrainingGraph& graph)
    : graph_(graph), layers_(graph.model.layers.size()), used_by_(graph.operations.size()) {
  for (std::uint32_t b = 0; b < graph.buffers.size(); ++b) {
    for (const OpId op : graph.buffers[b].uses) used_by_[op].push_back(b);
    if (graph.buffers[b].role == BufferRole::image) image_ = b;
  }
  find_operations();
  find_segments();
  find_readers();
}

void GraphIndex::find_operations() {
  for (OpId id = 0; id < graph_.operations.size(); ++id) {
    const Operation& op = graph_.operations[id];
    OfLayer& of = layers_[op.layer];
    const bool loss = op.part == OperationPart::loss;
    switch (op.phase) {
      case Phase::forward:
        (loss ? of.loss_forward : op.again ? of.again : of.forward) = id;
        break;
      case Phase::data_gradient:
        if (op.part == OperationPart::gradient_sum)
          of.sums.push_back(id);
        else
          (loss ? of.loss_backward : of.data_gradient) = id;
        break;
      case Phase::weight_gradient:
        of.weight_gradient = id;
        break;
      case Phase::update:
        of.update = id;
        break;
    }
  }
}

void GraphIndex::find_segments() {
  std::size_t done = layers_.size();  // layers from here on have had their backward pass
  bool is_in_run = false;
  for (OpId id = 0; id < graph_.operations.size(); ++id) {
    const Operation& op = graph_.operations[id];
    if (op.again && !is_in_run) segments_.push_back({op.layer, done});
    is_in_run = op.again;
    // Gradients of one output are summed in the backward pass of its readers, and losses come before all
    // layers.
    const bool backward = op.phase == Phase::data_gradient || op.phase == Phase::weight_gradient;
    if (backward && op.reader == Operation::no_reader && layers_[op.layer].loss_backward != id)
      done = std::min<std::size_t>(done, op.layer);
  }
  std::reverse(segments_.begin(), segments_.end());
}

void GraphIndex::find_readers() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = graph_.model.layers[i];
    OfLayer& of = layers_[i];
    of.needs_gradient = layer.trains() || std::holds_alternative<Custom>(layer.kind);
    for (const LayerIndex input : layer.inputs) {
      of.needs_gradient = of.needs_gradient || receives_gradient(input);
      if (input != image_input) ++layers_[static_cast<std::size_t>(input)].readers;
    }
    const LayerIndex first = layer.inputs.front();
    if (!of.forward) of.is_image = first == image_input || is_image(static_cast<std::size_t>(first));
  }
}

std::optional<std::uint32_t> GraphIndex::output_born_by(OpId op) const {
  for (const std::uint32_t b : used_by_[op])
    if (const Buffer& buffer = graph_.buffers[b]; buffer.born == op && buffer.role == BufferRole::output)
      return b;
  return std::nullopt;
}

bool GraphIndex::is_forward(std::uint32_t buffer) const {
  return graph_.operations[graph_.buffers[buffer].born].phase == Phase::forward && !is_scratch(buffer);
}

bool GraphIndex::is_scratch(std::uint32_t buffer) const {
  const Buffer& b = graph_.buffers[buffer];
  return b.memory_class != MemoryClass::activations && b.born == b.dies;
}

std::vector<std::uint32_t> GraphIndex::scratch_of(OpId op) const {
  std::vector<std::uint32_t> scratch;
  for (const std::uint32_t b : used_by_[op])
    if (is_scratch(b)) scratch.push_back(b);
  return scratch;
}

std::vector<std::uint32_t> GraphIndex::gradients_born_by(OpId op) const {
  std::vector<std::uint32_t> born;
  for (const std::uint32_t b : used_by_[op])
    if (graph_.buffers[b].born == op && !is_scratch(b)) born.push_back(b);
  return born;
}

}  // namespace convoy::lowering
