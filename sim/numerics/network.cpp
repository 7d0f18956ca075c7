// SPDX-License-Identifier: MIT
#include "sim/numerics/network.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/numerics/draw.h"

namespace convoy::inline numerics {
namespace {

/// Inputs that an output value of a convolution or linear layer has.
double fan_in(const Layer& layer) {
  const auto weights = static_cast<double>(layer.parameters[0].elements);
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind))
    return weights / static_cast<double>(conv->out_channels);
  return weights / static_cast<double>(std::get<Linear>(layer.kind).out_features);
}

}  // namespace

template <class Real>
ParameterValues<Real> first_parameters(const TrainingGraph& graph, std::uint64_t seed) {
  constexpr double layer_scale = 1e-6;
  ParameterValues<Real> values;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    const Layer& layer = graph.model.layers[parameter.layer];
    std::vector<Real>& of = values.emplace_back(static_cast<std::size_t>(parameter.elements));
    if (std::holds_alternative<Normalization>(layer.kind)) {
      std::fill(of.begin(), of.end(),
                Real(layer.parameters[parameter.tensor].role == ParameterRole::weight ? 1 : 0));
    } else if (std::holds_alternative<Scale>(layer.kind)) {
      std::fill(of.begin(), of.end(), static_cast<Real>(layer_scale));
    } else {
      const double bound = 1 / std::sqrt(fan_in(layer));
      const std::uint64_t stream = drawn_stream(DrawnFor::parameters, p);
      for (std::size_t e = 0; e < of.size(); ++e)
        of[e] = static_cast<Real>(bound * (2 * drawn_uniform(seed, stream, e) - 1));
    }
  }
  return values;
}

NetworkIndex::NetworkIndex(const TrainingGraph& graph)
    : parameters_of_(graph.model.layers.size()), readers_of_(graph.model.layers.size()) {
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    parameters_of_[graph.parameters[p].layer].push_back(p);
  for (std::uint32_t l = 0; l < graph.model.layers.size(); ++l) {
    const Layer& layer = graph.model.layers[l];
    if (layer.shares()) parameters_of_[l] = parameters_of_[static_cast<std::size_t>(layer.weights_of)];
    bool needs = !parameters_of_[l].empty();
    for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
      const LayerIndex input = layer.inputs[k];
      if (input == image_input) continue;
      readers_of_[static_cast<std::size_t>(input)].emplace_back(l, k);
      needs = needs || needs_gradient_[static_cast<std::size_t>(input)];
    }
    needs_gradient_.push_back(needs);
  }
  for (std::uint32_t l = 0; l < readers_of_.size(); ++l)
    if (readers_of_[l].empty() && needs_gradient_[l]) outputs_.push_back(l);
}

bool reads(const TrainingGraph& graph, OpId operation, OpId other) {
  const std::vector<OpId>& inputs = graph.operations[operation].inputs;
  return std::binary_search(inputs.begin(), inputs.end(), other);
}

template <class Real>
Judgement judge(const TrainingGraph& graph, const NetworkIndex& index,
                const ParameterValues<Real>& parameters, const std::vector<RunningStatistics<Real>>& running,
                const LearningData::Part& part) {
  constexpr std::int64_t at_a_time = 64;
  Judgement judged;
  std::int64_t right = 0;
  for (std::int64_t first = 0; first < part.count(); first += at_a_time) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(at_a_time, part.count() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const LabelledImages<Real> batch = images_of<Real>(part, graph.model.input, numbers);
    std::vector<Tensor<Real>> outputs;
    for (std::uint32_t l = 0; l < graph.model.layers.size(); ++l) {
      KernelCall<Real> call;
      call.layer = &graph.model.layers[l];
      call.training = false;
      for (const LayerIndex input : call.layer->inputs)
        call.inputs.push_back(input == image_input ? &batch.images
                                                   : &outputs[static_cast<std::size_t>(input)]);
      for (const std::size_t p : index.parameters_of(l)) call.parameters.push_back(&parameters[p]);
      if (!running[l].mean.empty()) call.running = &running[l];
      outputs.push_back(forward_kernel(call));
    }
    const Tensor<Real>& output = outputs[index.outputs().back()];
    judged.loss += cross_entropy(output, batch.labels);
    for (std::int64_t i = 0; i < output.images; ++i) {
      const Real* classes = output.image(i);
      const std::int64_t best = std::max_element(classes, classes + output.size()) - classes;
      if (best == batch.labels[static_cast<std::size_t>(i)]) ++right;
    }
  }
  judged.loss /= static_cast<double>(part.count());
  judged.accuracy = static_cast<double>(right) / static_cast<double>(part.count());
  return judged;
}

template ParameterValues<double> first_parameters(const TrainingGraph&, std::uint64_t);
template ParameterValues<float> first_parameters(const TrainingGraph&, std::uint64_t);
template Judgement judge(const TrainingGraph&, const NetworkIndex&, const ParameterValues<double>&,
                         const std::vector<RunningStatistics<double>>&, const LearningData::Part&);
template Judgement judge(const TrainingGraph&, const NetworkIndex&, const ParameterValues<float>&,
                         const std::vector<RunningStatistics<float>>&, const LearningData::Part&);

}  // namespace convoy::numerics
