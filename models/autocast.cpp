// SPDX-License-Identifier: MIT
#include "models/autocast.h"

#include <algorithm>

#include "models/attention.h"
#include "models/memory_rules.h"
#include "models/tensor_bytes.h"

namespace convoy::inline models {
namespace {

bool has_autocast(Framework framework, Precision precision) {
  return (framework == Framework::pytorch || framework == Framework::pytorch1) &&
         (precision == Precision::fp16 || precision == Precision::bf16);
}

bool is_product(const Layer& layer) {
  return std::holds_alternative<Conv2d>(layer.kind) || std::holds_alternative<ConvTranspose2d>(layer.kind) ||
         std::holds_alternative<DeformConv2d>(layer.kind) || std::holds_alternative<Conv3d>(layer.kind) ||
         std::holds_alternative<ConvTranspose3d>(layer.kind) || std::holds_alternative<Linear>(layer.kind) ||
         std::holds_alternative<MatMul>(layer.kind) || std::holds_alternative<Attention>(layer.kind);
}

/// Whether autocast runs it in single precision, whatever it reads.
bool runs_in_single(const Layer& layer) {
  if (const auto* norm = std::get_if<Normalization>(&layer.kind))
    return norm->over != Normalization::Over::batch;
  if (const auto* activation = std::get_if<Activation>(&layer.kind))
    return activation->function == Activation::Function::softmax;
  return std::holds_alternative<DetectionLoss>(layer.kind);
}

/// Whether it reads parameters or constants, which are in single precision, by promotion of types.
bool reads_single_constants(const Layer& layer) {
  return std::holds_alternative<PositionEmbedding>(layer.kind) ||
         std::holds_alternative<ClassToken>(layer.kind) || std::holds_alternative<Scale>(layer.kind) ||
         std::holds_alternative<FrozenBatchNorm>(layer.kind);
}

bool is_single(LayerIndex layer, const std::vector<bool>& single) {
  return layer != image_input && single[static_cast<std::size_t>(layer)];
}

double values_of(const Shape& shape) { return static_cast<double>(elements(shape)); }

}  // namespace

std::vector<bool> single_precision_outputs(const Model& model, Framework framework, Precision precision) {
  std::vector<bool> single(model.layers.size(), false);
  if (!has_autocast(framework, precision)) return single;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (is_product(layer)) continue;
    single[i] = runs_in_single(layer) || reads_single_constants(layer) ||
                std::any_of(layer.inputs.begin(), layer.inputs.end(),
                            [&](LayerIndex input) { return is_single(input, single); });
  }
  return single;
}

std::vector<double> held_bytes_a_value(const Model& model, Framework framework, Precision precision) {
  const double half = element_bytes(precision);
  const std::vector<bool> single = single_precision_outputs(model, framework, precision);
  std::vector<double> bytes(model.layers.size(), half);
  std::vector<bool> kept(single.size()), kept_as_cast(single.size());
  for (std::size_t reader = single.size(); reader-- > 0;) {  // readers come after what they read
    const Layer& layer = model.layers[reader];
    const MemoryRules rules = memory_rules(model, reader, framework);
    if (rules.output_for_data) kept[reader] = true;
    if (single[reader])
      bytes[reader] = kept[reader] ? (kept_as_cast[reader] ? 4 + half : 4) : kept_as_cast[reader] ? half : 4;
    const bool keeps = rules.input_for_data || rules.input_for_weights;
    for (const LayerIndex input : layer.inputs) {
      if (input == image_input) continue;
      const auto of = static_cast<std::size_t>(input);
      if (rules.view ? kept[reader] : keeps && !is_product(layer)) kept[of] = true;
      if (rules.view ? kept_as_cast[reader] : keeps && is_product(layer)) kept_as_cast[of] = true;
    }
  }
  return bytes;
}

TensorBytes::TensorBytes(const TrainingGraph& graph)
    : graph_(graph),
      single_(single_precision_outputs(graph.model, graph.options.framework, graph.options.precision)) {}

double TensorBytes::operator()(LayerIndex layer) const {
  return of_value(layer) * values_of(graph_.model.shape_of(layer));
}

double TensorBytes::of_inputs(std::size_t layer) const {
  double bytes = 0;
  for (const LayerIndex input : graph_.model.layers[layer].inputs) bytes += (*this)(input);
  return bytes;
}

double TensorBytes::of_value(LayerIndex layer) const {
  return is_single(layer, single_) ? 4 : element_bytes(graph_.options.precision);
}

void add_single_precision(LayerCosts& costs, const Model& model, std::size_t index,
                          const std::vector<bool>& single, Framework framework, Precision precision,
                          bool casts) {
  if (!has_autocast(framework, precision)) return;
  const Layer& layer = model.layers[index];
  const double element = element_bytes(precision), more = 4 - element, cast = casts ? 4 + element : 0;
  double all = values_of(layer.output), in_single = single[index] ? all : 0, to_cast = 0;
  for (const LayerIndex input : layer.inputs) {
    const double values = values_of(model.shape_of(input));
    all += values;
    if (is_single(input, single)) in_single += values;
    const bool is_cast =
        is_product(layer) ? is_single(input, single) : runs_in_single(layer) && !is_single(input, single);
    if (is_cast) to_cast += values;
  }
  if (is_product(layer)) {
    if (costs.forward) costs.forward->aside_bytes += cast * to_cast;
    if (costs.data_gradient) costs.data_gradient->aside_bytes += cast * to_cast;
    if (const auto* attention = std::get_if<Attention>(&layer.kind);
        attention && keeps_scores(*attention, framework)) {
      const AttentionSizes sizes =
          attention_sizes(*attention, layer.output, model.shape_of(layer.inputs.back()));
      const double scores = sizes.scores();
      costs.forward->aside_bytes += (2 * more + 2 * cast) * scores;
      costs.data_gradient->aside_bytes += (3 * more + 2 * cast) * scores;
      if (attention->cosine) {  // norms and quotients in single precision, from copies and to copies
        const double normalized =
            static_cast<double>(sizes.channels) * (static_cast<double>(sizes.queries) + sizes.key_tokens());
        costs.forward->aside_bytes += (2 * more + 2 * cast) * normalized;
        costs.data_gradient->aside_bytes += (21 * more + 2 * cast) * normalized;
      }
    }
    return;
  }
  for (auto* cost : {&costs.forward, &costs.data_gradient, &costs.weight_gradient})
    if (*cost) (*cost)->bytes += more * (*cost)->values * in_single / all;
  if (costs.forward) costs.forward->bytes += cast * to_cast;
  if (costs.data_gradient) costs.data_gradient->bytes += cast * to_cast;
}

}  // namespace convoy::models
