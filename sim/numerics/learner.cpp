// SPDX-License-Identifier: MIT
#include "sim/numerics/learner.h"

#include <utility>

namespace convoy::inline numerics {

template <class Real>
Learner<Real>::Learner(const TrainingGraph& graph, const LearningData& data, std::uint64_t seed,
                       double learning_rate)
    : graph_(graph),
      data_(data),
      index_(graph),
      order_(seed, data.train.count()),
      seed_(seed),
      learning_rate_(learning_rate),
      parameters_(first_parameters<Real>(graph, seed)),
      running_(graph.model.layers.size()) {
  for (const std::vector<Real>& parameter : parameters_)
    states_.emplace_back(graph.options.optimizer, parameter.size());
}

template <class Real>
double Learner<Real>::step(std::int64_t batch, const std::vector<ImageShare>& shares) {
  loss_ = 0;
  const ParameterValues<Real> sums = gradients(batch, shares);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    states_[p].begin();
    states_[p].update(parameters_[p], sums[p], 0, parameters_[p].size(), learning_rate_);
  }
  ++step_, position_ += batch;
  return loss_ / static_cast<double>(batch);
}

template <class Real>
ParameterValues<Real> Learner<Real>::gradients(std::int64_t batch, const std::vector<ImageShare>& shares) {
  ParameterValues<Real> sums;
  for (const std::vector<Real>& parameter : parameters_) sums.emplace_back(parameter.size(), Real{0});
  for (const ImageShare& share : shares) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < share.count; ++i)
      numbers.push_back(order_.image(position_ + share.first + i));
    learn_from(images_of<Real>(data_.train, graph_.model.input, numbers), share.first,
               1 / static_cast<double>(batch), sums);
  }
  return sums;
}

/// The gradient of every output is added up in the model's reverse order.
template <class Real>
void Learner<Real>::learn_from(const LabelledImages<Real>& batch, std::int64_t first, double scale,
                               ParameterValues<Real>& sums) {
  const std::vector<Layer>& layers = graph_.model.layers;
  std::vector<Tensor<Real>> outputs(layers.size());
  const auto call_of = [&](std::uint32_t l) {
    KernelCall<Real> call;
    call.layer = &layers[l];
    for (const LayerIndex input : layers[l].inputs)
      call.inputs.push_back(input == image_input ? &batch.images : &outputs[static_cast<std::size_t>(input)]);
    for (const std::size_t p : index_.parameters_of(l)) call.parameters.push_back(&parameters_[p]);
    call.seed = seed_, call.step = step_, call.first_image = first, call.index = l;
    return call;
  };
  for (std::uint32_t l = 0; l < layers.size(); ++l) {
    outputs[l] = forward_kernel(call_of(l));
    if (const auto* norm = std::get_if<Normalization>(&layers[l].kind);
        norm && norm->over == Normalization::Over::batch)
      update_running(call_of(l), running_[l]);
  }
  std::vector<Tensor<Real>> gradients(layers.size());
  for (const std::uint32_t l : index_.outputs()) {
    loss_ += cross_entropy(outputs[l], batch.labels);
    gradients[l] = cross_entropy_gradient(outputs[l], batch.labels, scale);
  }
  for (std::uint32_t l = static_cast<std::uint32_t>(layers.size()); l-- > 0;) {
    if (!index_.needs_gradient(l)) continue;
    const KernelCall<Real> call = call_of(l);
    const std::vector<std::size_t>& parameters = index_.parameters_of(l);
    if (!parameters.empty()) {
      const std::vector<std::vector<Real>> made = weight_gradient_kernel(call, gradients[l]);
      for (std::size_t t = 0; t < parameters.size(); ++t)
        for (std::size_t e = 0; e < made[t].size(); ++e) sums[parameters[t]][e] += made[t][e];
    }
    bool goes_on = false;
    for (const LayerIndex input : layers[l].inputs)
      goes_on = goes_on || (input != image_input && index_.needs_gradient(static_cast<std::uint32_t>(input)));
    if (!goes_on) continue;
    std::vector<Tensor<Real>> made = data_gradient_kernel(call, gradients[l]);
    for (std::size_t n = 0; n < made.size(); ++n) {
      if (layers[l].inputs[n] == image_input) continue;
      Tensor<Real>& sum = gradients[static_cast<std::size_t>(layers[l].inputs[n])];
      if (sum.values.empty())
        sum = std::move(made[n]);
      else
        for (std::size_t v = 0; v < sum.values.size(); ++v) sum.values[v] += made[n].values[v];
    }
    gradients[l] = {};
  }
}

template class Learner<double>;
template class Learner<float>;

}  // namespace convoy::numerics
