// SPDX-License-Identifier: MIT
#include "strategies/hybrid/graph_index.h"

namespace convoy {

GraphIndex::GraphIndex(const TrainingGraph& graph)
    : graph_(graph), layers_(graph.model.layers.size()), used_by_(graph.operations.size()) {
  for (std::uint32_t b = 0; b < graph.buffers.size(); ++b) {
    for (const OpId op : graph.buffers[b].uses) used_by_[op].push_back(b);
    if (graph.buffers[b].name == "input") image_ = b;
  }
  find_operations();
  find_storage();
}

void GraphIndex::find_operations() {
  for (OpId id = 0; id < graph_.operations.size(); ++id) {
    const Operation& op = graph_.operations[id];
    OfLayer& of = layers_[op.layer];
    const bool loss =
        op.name == graph_.model.layers[op.layer].name + ".loss." + std::string(to_string(op.phase));
    switch (op.phase) {
      case Phase::forward:
        (loss ? of.loss_forward : of.forward) = id;
        break;
      case Phase::data_gradient:
        if (op.reader != Operation::no_reader)
          of.sums.push_back(id);
        else
          (loss ? of.loss_backward : of.data_gradient) = id;
        break;
      case Phase::weight_gradient:
        of.weight_gradient = id;
        break;
      case Phase::update:
        break;
    }
  }
}

void GraphIndex::find_storage() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = graph_.model.layers[i];
    OfLayer& of = layers_[i];
    of.needs_gradient = !layer.parameters.empty() || std::holds_alternative<Custom>(layer.kind);
    for (const LayerIndex input : layer.inputs) {
      of.needs_gradient = of.needs_gradient || receives_gradient(input);
      if (input != image_input) ++layers_[static_cast<std::size_t>(input)].readers;
    }
    if (of.forward) {
      for (const std::uint32_t b : used_by_[*of.forward])
        if (graph_.buffers[b].born == *of.forward && graph_.buffers[b].name == layer.name + ".output")
          of.storage = b;
    } else {
      const LayerIndex input = layer.inputs.front();
      of.is_image = input == image_input || is_image(static_cast<std::size_t>(input));
    }
    if (!of.storage) of.storage = storage_of(layer.inputs.front());
  }
}

bool GraphIndex::is_forward(std::uint32_t buffer) const {
  return graph_.operations[graph_.buffers[buffer].born].phase == Phase::forward;
}

std::vector<std::uint32_t> GraphIndex::gradients_born_by(OpId op) const {
  std::vector<std::uint32_t> born;
  for (const std::uint32_t b : used_by_[op])
    if (graph_.buffers[b].born == op) born.push_back(b);
  return born;
}

}  // namespace convoy
