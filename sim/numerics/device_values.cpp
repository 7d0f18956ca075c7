// SPDX-License-Identifier: MIT
#include "sim/numerics/device_values.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::inline numerics {
template <class Real>
DeviceValues<Real>::DeviceValues(const Lesson& lesson, std::string name)
    : lesson_(lesson),
      name_(std::move(name)),
      contents_(lesson.graph, lesson.index),
      running_(lesson.graph.model.layers.size()) {}

template <class Real>
void DeviceValues<Real>::begin_step(std::int64_t step, std::int64_t position, double loss_scale) {
  micro_batches_.clear();
  images_.clear();
  step_ = step, position_ = position, scale_ = loss_scale, loss_ = 0;
}

template <class Real>
void DeviceValues<Real>::forget(std::int64_t micro_batch) {
  micro_batches_.erase(micro_batch);
  images_.clear();
}

template <class Real>
void DeviceValues<Real>::miss(const std::string& what) const {
  throw MissingValue(fmt::format("{}: {}", name_, what));
}

template <class Real>
const LabelledImages<Real>& DeviceValues<Real>::images(std::int64_t first, std::int64_t count) {
  const auto [it, fresh] = images_.try_emplace({first, count});
  if (fresh) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(lesson_.order.image(position_ + first + i));
    it->second = images_of<Real>(lesson_.data.train, lesson_.graph.model.input, numbers);
  }
  return it->second;
}

template <class Real>
TensorPtr<Real> DeviceValues<Real>::output(const Reader& reader, LayerIndex index) {
  if (index == image_input)
    return std::make_shared<const Tensor<Real>>(images(reader.first, reader.count).images);
  const auto layer = static_cast<std::uint32_t>(index);
  const std::string& what = lesson_.graph.model.layers[layer].name;
  if (const auto made = reader.of.outputs.find(layer); made != reader.of.outputs.end()) {
    const Output& output = made->second;
    if (output.since > reader.began) miss(fmt::format("does not wait for the output of {}", what));
    if (output.pass && reader.means && *output.pass != reader.means->pass)
      miss(fmt::format("needs the output of {}, which is no longer there", what));
    if (output.value->images != reader.count || output.first != reader.first)
      miss(fmt::format("needs the output of {} of {} images from {} on, and has that of {} from {} on", what,
                       reader.count, reader.first, output.value->images, output.first));
    return output.value;
  }
  if (!is_view(layer)) miss(fmt::format("needs the output of {}, which is not there", what));
  std::vector<TensorPtr<Real>> inputs;
  return std::make_shared<const Tensor<Real>>(forward_kernel(call(reader, layer, inputs, nullptr)));
}

template <class Real>
KernelCall<Real> DeviceValues<Real>::call(const Reader& reader, std::uint32_t layer,
                                          std::vector<TensorPtr<Real>>& inputs,
                                          const ParameterValues<Real>* parameters) {
  KernelCall<Real> call;
  call.layer = &lesson_.graph.model.layers[layer];
  for (const LayerIndex input : call.layer->inputs) inputs.push_back(output(reader, input));
  for (const TensorPtr<Real>& input : inputs) call.inputs.push_back(input.get());
  if (parameters)
    for (const std::size_t p : lesson_.index.parameters_of(layer))
      call.parameters.push_back(&(*parameters)[p]);
  call.seed = lesson_.seed, call.step = step_, call.first_image = reader.first, call.index = layer;
  return call;
}

template <class Real>
void DeviceValues<Real>::run(const OpMeaning& means, std::int64_t first, std::uint64_t began,
                             const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients) {
  const Operation& operation = lesson_.graph.operations[means.operation];
  const std::uint32_t layer = operation.layer;
  if (first < 0) miss(fmt::format("{} works on image {}, which there is not", operation.name, first));
  const Reader reader{micro_batches_[means.micro_batch], &means, first,
                      static_cast<std::int64_t>(means.images.count), began};
  std::map<std::uint32_t, std::map<Parts, Gradient>>& made = reader.of.gradients;
  if (operation.part == OperationPart::loss) {
    const TensorPtr<Real> result = output(reader, static_cast<LayerIndex>(layer));
    const std::vector<std::int32_t>& labels = images(first, reader.count).labels;
    if (operation.phase == Phase::forward)
      loss_ += reader.of.counted.insert(means.operation).second ? cross_entropy(*result, labels) : 0;
    else
      made[layer][{{means.operation, 0}}] = {
          std::make_shared<const Tensor<Real>>(cross_entropy_gradient(*result, labels, scale_)),
          means.operation, first};
    return;
  }
  if (operation.part == OperationPart::gradient_sum) {
    add_up(reader, layer);
    return;
  }
  std::vector<TensorPtr<Real>> inputs;
  switch (operation.phase) {
    case Phase::forward:
      forward(reader, parameters);
      return;
    case Phase::data_gradient: {
      const TensorPtr<Real> of_output = gradient(reader, layer);
      std::vector<Tensor<Real>> results =
          data_gradient_kernel(call(reader, layer, inputs, &parameters), *of_output);
      const std::vector<LayerIndex>& to = lesson_.graph.model.layers[layer].inputs;
      for (std::size_t n = 0; n < results.size(); ++n)
        if (to[n] != image_input)
          made[static_cast<std::uint32_t>(to[n])][{contents_.made(means.operation, {layer, n})}] = {
              std::make_shared<const Tensor<Real>>(std::move(results[n])), means.operation, first};
      return;
    }
    case Phase::weight_gradient: {
      const TensorPtr<Real> of_output = gradient(reader, layer);
      const std::vector<std::vector<Real>> results =
          weight_gradient_kernel(call(reader, layer, inputs, &parameters), *of_output);
      const std::vector<std::size_t>& of = lesson_.index.parameters_of(layer);
      for (std::size_t t = 0; t < of.size(); ++t) {
        std::vector<Real>& sum = gradients[of[t]];
        sum.resize(results[t].size(), Real{0});
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += results[t][e];
      }
      return;
    }
    case Phase::update:
      return;
  }
}

template <class Real>
void DeviceValues<Real>::forward(const Reader& reader, const ParameterValues<Real>& parameters) {
  const std::uint32_t layer = lesson_.graph.operations[reader.means->operation].layer;
  std::vector<TensorPtr<Real>> inputs;
  const KernelCall<Real> of = call(reader, layer, inputs, &parameters);
  Output made{std::make_shared<const Tensor<Real>>(forward_kernel(of)), reader.first, std::nullopt};
  if (reader.means->is_dropped) made.pass = reader.means->pass;
  reader.of.outputs[layer] = std::move(made);
  const auto* norm = std::get_if<Normalization>(&of.layer->kind);
  if (norm && norm->over == Normalization::Over::batch &&
      reader.of.counted.insert(reader.means->operation).second)
    update_running(of, running_[layer]);
}

// Gradients.

template <class Real>
TensorPtr<Real> DeviceValues<Real>::gradient(const Reader& reader, std::uint32_t layer) {
  const std::string& what = lesson_.graph.model.layers[layer].name;
  const std::optional<Gradient> found = find(reader, layer, contents_.whole[layer]);
  if (!found) miss(fmt::format("needs the whole gradient of the output of {}, which is not there", what));
  if (found->since > reader.began)
    miss(fmt::format("does not wait for the gradient of the output of {}", what));
  if (found->value->images != reader.count || found->first != reader.first)
    miss(fmt::format(
        "needs the gradient of the output of {} of {} images from {} on, and has that of {} from {} on", what,
        reader.count, reader.first, found->value->images, found->first));
  return found->value;
}

/// The gradient with these parts: as it was made or has come, or as that of a reader's output.
template <class Real>
std::optional<typename DeviceValues<Real>::Gradient> DeviceValues<Real>::find(const Reader& reader,
                                                                              std::uint32_t layer,
                                                                              const Parts& parts) {
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    if (const auto made = of->second.find(parts); made != of->second.end()) return made->second;
  for (const GradientContents::Slot& view : lesson_.index.readers_of(layer))
    if (!contents_.has.data_gradient[view.first])
      if (std::optional<Gradient> found = through(reader, view, parts)) return found;
  return std::nullopt;
}

template <class Real>
std::optional<typename DeviceValues<Real>::Gradient> DeviceValues<Real>::through(
    const Reader& reader, const GradientContents::Slot& view, const Parts& parts) {
  const std::optional<Parts> of_output = contents_.taken_from(parts, view);
  if (!of_output) return std::nullopt;
  std::optional<Gradient> of_view = find(reader, view.first, *of_output);
  if (!of_view) return std::nullopt;
  const Layer& read_by = lesson_.graph.model.layers[view.first];
  KernelCall<Real> call;
  call.layer = &read_by;
  std::vector<Tensor<Real>> shapes;  // such layers read no values for their gradients
  for (const LayerIndex input : read_by.inputs) shapes.emplace_back(lesson_.graph.model.shape_of(input), 0);
  for (const Tensor<Real>& shape : shapes) call.inputs.push_back(&shape);
  std::vector<Tensor<Real>> results = data_gradient_kernel(call, *of_view->value);
  of_view->value = std::make_shared<const Tensor<Real>>(std::move(results[view.second]));
  return of_view;
}

template <class Real>
void DeviceValues<Real>::list(const Reader& reader, std::uint32_t layer, ListedGradients& all) {
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    for (const auto& [parts, made] : of->second)
      if (made.since <= reader.began)
        all[parts] |= reader.means && reads(lesson_.graph, reader.means->operation, made.operation);
  for (const GradientContents::Slot& view : lesson_.index.readers_of(layer)) {
    if (contents_.has.data_gradient[view.first]) continue;
    ListedGradients of_view;
    list(reader, view.first, of_view);
    for (const auto& [parts, is_summand] : of_view) all[contents_.handed_on(parts, view)] |= is_summand;
  }
}

/// Adds up two parts of a gradient.
template <class Real>
void DeviceValues<Real>::add_up(const Reader& reader, std::uint32_t layer) {
  ListedGradients all;
  list(reader, layer, all);
  const std::optional<TwoParts> two = two_to_add_up(all, contents_.whole[layer]);
  if (!two)
    miss(fmt::format("has nothing to add up of the gradient of the output of {}: a part is missing",
                     lesson_.graph.model.layers[layer].name));
  Tensor<Real> sum = *find(reader, layer, two->first)->value;
  const TensorPtr<Real> more = find(reader, layer, two->second)->value;
  for (std::size_t v = 0; v < sum.values.size(); ++v) sum.values[v] += more->values[v];
  reader.of.gradients[layer][two->both] = {std::make_shared<const Tensor<Real>>(std::move(sum)),
                                           reader.means->operation, reader.first};
}

// Messages.

template <class Real>
typename DeviceValues<Real>::Carried DeviceValues<Real>::send(const CommMeaning::Result& result,
                                                              const CommMeaning& means, std::int64_t first,
                                                              std::uint64_t now) {
  const Reader reader{micro_batches_[means.micro_batch], nullptr, first,
                      static_cast<std::int64_t>(means.images.count), now};
  const Operation& operation = lesson_.graph.operations[result.operation];
  if (operation.phase == Phase::forward && operation.part == OperationPart::layer)
    return {output(reader, static_cast<LayerIndex>(result.layer)), {}};
  ListedGradients all;
  list(reader, result.layer, all);
  std::optional<Gradient> best;
  const Parts* most = nullptr;
  for (const auto& [parts, is_summand] : all) {
    if (most && parts.size() <= most->size()) continue;
    std::optional<Gradient> found = find(reader, result.layer, parts);
    if (found && found->operation == result.operation && found->first == first)
      best = std::move(found), most = &parts;
  }
  if (!best)
    miss(fmt::format("sends what {} makes for {}, which is not there", operation.name,
                     lesson_.graph.model.layers[result.layer].name));
  return {best->value, *most};
}

template <class Real>
void DeviceValues<Real>::receive(const CommMeaning::Result& result, const CommMeaning& means, Carried carried,
                                 std::int64_t first, std::uint64_t now) {
  MicroBatch& of = micro_batches_[means.micro_batch];
  if (carried.parts.empty())
    of.outputs[result.layer] = {std::move(carried.value), first, std::nullopt, now};
  else
    of.gradients[result.layer][carried.parts] = {std::move(carried.value), result.operation, first, now};
}

template class DeviceValues<double>;
template class DeviceValues<float>;

}  // namespace convoy::numerics
