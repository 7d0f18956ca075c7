// SPDX-License-Identifier: MIT
#include "sim/run/tensor_parts.h"

#include <algorithm>
#include <utility>

namespace convoy::inline runs {

using prove::Box;

TensorParts::TensorParts(const TrainingGraph& graph, std::int64_t images, bool has_image_views)
    : graph_(graph),
      maps_(graph, images),
      has_image_views_(has_image_views),
      has_(graph),
      reads_images_(graph.operations.size(), false) {
  for (const Buffer& buffer : graph.buffers)
    if (buffer.role == BufferRole::image)
      for (const OpId operation : buffer.uses) reads_images_[operation] = true;
}

void TensorParts::add_output(LayerIndex layer, const Box& box, Parts& parts) const {
  if (layer == image_input) {
    parts.push_back({Tensor::images, 0, box});
    return;
  }
  const auto l = static_cast<std::uint32_t>(layer);
  if (has_.forward[l]) {
    parts.push_back({Tensor::output, l, box});
    return;
  }
  const std::vector<LayerIndex>& inputs = graph_.model.layers[l].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) add_output(inputs[k], maps_.read(l, k, box), parts);
}

void TensorParts::add_gradient(LayerIndex layer, const Box& box, Parts& parts) const {
  if (layer == image_input) return;
  const auto l = static_cast<std::uint32_t>(layer);
  if (has_.data_gradient[l] || has_.weight_gradient[l]) {
    parts.push_back({Tensor::output_gradient, l, box});
    return;
  }
  const std::vector<LayerIndex>& inputs = graph_.model.layers[l].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) add_gradient(inputs[k], maps_.read(l, k, box), parts);
}

void TensorParts::add_parameters(std::uint32_t layer, Tensor tensor, const Box& work, Parts& parts) const {
  const Layer& of = graph_.model.layers[layer];
  if (of.parameters.empty() && !of.shares()) return;
  Box box = maps_.work(layer);
  box[Box::channels] = work[Box::channels], box[Box::inputs] = work[Box::inputs];
  parts.push_back({tensor, graph_.model.parameter_owner(layer), std::move(box)});
}

TensorParts::Parts TensorParts::reads(OpId id, const Box& work) const {
  const Operation& operation = graph_.operations[id];
  const auto layer = static_cast<LayerIndex>(operation.layer);
  const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
  Box output = work;
  output[Box::inputs] = all_of(1);
  Parts parts;
  if (operation.phase == Phase::update) {
    add_parameters(operation.layer, Tensor::parameter_gradients, work, parts);
    add_parameters(operation.layer, Tensor::parameters, work, parts);
    return parts;
  }
  const auto add_inputs = [&](const auto& reads) {
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (reads(inputs[k])) add_output(inputs[k], maps_.read(operation.layer, k, work), parts);
  };
  if (operation.part == OperationPart::loss) {
    add_output(layer, output, parts);
  } else if (operation.part == OperationPart::gradient_sum) {
    add_gradient(layer, output, parts);
  } else if (operation.phase == Phase::forward) {
    add_inputs([](LayerIndex) { return true; });
  } else {
    // What the forward pass has kept for it.
    const auto kept = [&](LayerIndex input, const auto& self) -> bool {
      if (input == image_input) return reads_images_[id];
      const auto l = static_cast<std::uint32_t>(input);
      if (!has_.forward[l]) {
        const std::vector<LayerIndex>& of = graph_.model.layers[l].inputs;
        return std::any_of(of.begin(), of.end(), [&](LayerIndex next) { return self(next, self); });
      }
      return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](OpId read) {
        const Operation& other = graph_.operations[read];
        return other.phase == Phase::forward && other.layer == l;
      });
    };
    if (kept(layer, kept)) add_output(layer, output, parts);
    add_inputs([&](LayerIndex input) { return kept(input, kept); });
    add_gradient(layer, output, parts);
  }
  if (operation.part == OperationPart::layer && operation.phase != Phase::weight_gradient)
    add_parameters(operation.layer, Tensor::parameters, work, parts);
  return parts;
}

TensorParts::Parts TensorParts::writes(OpId id, const Box& work) const {
  const Operation& operation = graph_.operations[id];
  const auto layer = static_cast<LayerIndex>(operation.layer);
  Box output = work;
  output[Box::inputs] = all_of(1);
  Parts parts;
  if (operation.phase == Phase::update) {
    add_parameters(operation.layer, Tensor::parameters, work, parts);
  } else if (operation.phase == Phase::weight_gradient) {
    add_parameters(operation.layer, Tensor::parameter_gradients, work, parts);
  } else if (operation.phase == Phase::forward) {
    if (operation.part == OperationPart::layer) add_output(layer, output, parts);
  } else if (operation.part != OperationPart::layer) {
    add_gradient(layer, output, parts);
  } else {
    const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Box box = maps_.read(operation.layer, k, work);
      if (inputs[k] == image_input) continue;
      // What a stride skips is zero.
      const Box all = maps_.work(operation.layer), input = maps_.tensor(static_cast<std::size_t>(inputs[k]));
      for (const Box::Axis axis : {Box::rows, Box::columns})
        if (work[axis] == all[axis]) box[axis] = input[axis];
      add_gradient(inputs[k], box, parts);
    }
  }
  return parts;
}

TensorParts::Parts TensorParts::parts_of(const CommMeaning::Result& result, const Box& box) const {
  Parts parts;
  const auto layer = static_cast<LayerIndex>(result.layer);
  const bool is_view = has_image_views_ && !has_.forward[result.layer];
  if (result.operation == no_meaning) {
    add_output(is_view ? layer : image_input, box, parts);
    return parts;
  }
  switch (graph_.operations[result.operation].phase) {
    case Phase::forward:
      add_output(layer, box, parts);
      break;
    case Phase::data_gradient:
      add_gradient(layer, box, parts);
      break;
    case Phase::weight_gradient:
      add_parameters(result.layer, Tensor::parameter_gradients, box, parts);
      break;
    case Phase::update:
      add_parameters(result.layer, Tensor::parameters, box, parts);
      break;
  }
  return parts;
}

Box TensorParts::whole(const Part& part) const {
  if (part.tensor == Tensor::images) return maps_.image_tensor();
  return is_of_parameters(part.tensor) ? maps_.work(part.layer) : maps_.tensor(part.layer);
}

Box TensorParts::whole(const CommMeaning::Result& result) const {
  if (result.operation == no_meaning) {
    const bool is_view = has_image_views_ && !has_.forward[result.layer];
    return is_view ? maps_.tensor(result.layer) : maps_.image_tensor();
  }
  const Phase phase = graph_.operations[result.operation].phase;
  const bool of_parameters = phase == Phase::weight_gradient || phase == Phase::update;
  return of_parameters ? maps_.work(result.layer) : maps_.tensor(result.layer);
}

}  // namespace convoy::runs
