// SPDX-License-Identifier: MIT
#include "sim/numerics/part_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace convoy::inline numerics {
template <class Real>
PartValues<Real>::PartValues(const PartLesson& parts, std::string name, EndpointId id)
    : parts_(parts), name_(std::move(name)), id_(id), running_(parts.lesson.graph.model.layers.size()) {}

template <class Real>
void PartValues<Real>::begin_step(std::int64_t step, std::int64_t position, double loss_scale) {
  micro_batches_.clear();
  come_parameters_.clear();
  step_ = step, position_ = position, scale_ = loss_scale, loss_ = 0;
}

template <class Real>
void PartValues<Real>::miss(const std::string& what) const {
  throw MissingValue(fmt::format("{}: {}", name_, what));
}

// What is there.

template <class Real>
bool PartValues<Real>::is_visible(const Reader& reader, const Piece& piece) const {
  if (piece.since > reader.began) return false;
  return !piece.pass || !reader.means || *piece.pass == reader.means->pass;
}

template <class Real>
void PartValues<Real>::fill(const Reader& reader, const Pieces& from, Part<Real>& to,
                            std::vector<Box>& missing) const {
  for (auto piece = from.rbegin(); piece != from.rend(); ++piece) {
    if (!is_visible(reader, *piece)) continue;
    for (const Box& box : missing) copy_values(piece->part, box, to);
    subtract(missing, piece->part.box);
  }
  std::erase_if(missing, [](const Box& box) { return box.empty(); });
}

template <class Real>
void PartValues<Real>::take_away(const std::vector<Come>& come, std::uint64_t began,
                                 std::vector<Box>& missing) {
  for (const Come& each : come)
    if (each.since <= began) subtract(missing, each.box);
  std::erase_if(missing, [](const Box& box) { return box.empty(); });
}

template <class Real>
void PartValues<Real>::need_images(const Reader& reader, const Box& wanted) const {
  const std::vector<bool>& has = parts_.meaning.has_images;
  if (has.empty() || (id_ < has.size() && has[id_])) return;
  std::vector<Box> missing{wanted};
  take_away(reader.of.images, reader.began, missing);
  if (!missing.empty()) miss("needs images, which are not there");
}

template <class Real>
void PartValues<Real>::need_view(const Reader& reader, std::uint32_t layer, std::vector<Box> wanted) const {
  if (parts_.meaning.has_images[id_]) return;
  for (const ImageView& view : parts_.meaning.image_views)
    if (view.layer == layer) subtract(wanted, parts_.in_layout(view.layout, id_, parts_.maps.tensor(layer)));
  if (const auto come = reader.of.views.find(layer); come != reader.of.views.end())
    take_away(come->second, reader.began, wanted);
  std::erase_if(wanted, [](const Box& box) { return box.empty(); });
  if (wanted.empty()) return;
  const LayerIndex input = model().layers[layer].inputs.front();
  if (input == image_input) miss(fmt::format("needs {}, which is not there", name_of(layer)));
  for (Box& box : wanted) box = parts_.maps.read(layer, 0, box);
  need_view(reader, static_cast<std::uint32_t>(input), std::move(wanted));
}

template <class Real>
Tensor<Real> PartValues<Real>::image_as(const Reader& reader, LayerIndex index, const IndexSet& images) {
  if (index == image_input) return labelled(reader, images).images;
  const Layer& view = model().layers[static_cast<std::size_t>(index)];
  const Tensor<Real> input = image_as(reader, view.inputs.front(), images);
  KernelCall<Real> call;
  call.layer = &view;
  call.inputs = {&input};
  return forward_kernel(call);
}

template <class Real>
void PartValues<Real>::need_parameters(const Reader& reader, std::uint32_t layer, const Box& work) const {
  if (parts_.lesson.index.parameters_of(layer).empty()) return;
  const std::uint32_t owner = parts_.lesson.graph.model.parameter_owner(layer);
  std::vector<Box> missing{parts_.parameter_part(layer, work)};
  if (const auto own = kept_.find(owner); own != kept_.end()) subtract(missing, own->second);
  if (const auto come = come_parameters_.find(owner); come != come_parameters_.end())
    take_away(come->second, reader.began, missing);
  std::erase_if(missing, [](const Box& box) { return box.empty(); });
  if (!missing.empty()) miss(fmt::format("needs parameters of {}, which are not there", name_of(layer)));
}

template <class Real>
LabelledImages<Real> PartValues<Real>::labelled(const Reader& reader, const IndexSet& of) {
  std::vector<std::int64_t> numbers;
  for (const IndexRange& range : of)
    for (std::int64_t i = range.begin; i < range.end; ++i)
      numbers.push_back(parts_.lesson.order.image(position_ + reader.first + i));
  return images_of<Real>(parts_.lesson.data.train, model().input, numbers);
}

template <class Real>
Part<Real> PartValues<Real>::output(const Reader& reader, LayerIndex index, const Box& wanted,
                                    const Box& frame) {
  Part<Real> part(frame);
  if (wanted.empty()) return part;
  if (index == image_input) {
    need_images(reader, wanted);
    const Box box = whole_images(parts_.maps.image_tensor(), wanted);
    copy_values(Part<Real>(box, labelled(reader, box[Box::images]).images.values), wanted, part);
    return part;
  }
  const auto layer = static_cast<std::uint32_t>(index);
  if (parts_.is_image_view(layer)) {
    need_view(reader, layer, {wanted});
    const Box box = whole_images(parts_.maps.tensor(layer), wanted);
    copy_values(Part<Real>(box, image_as(reader, index, box[Box::images]).values), wanted, part);
    return part;
  }
  std::vector<Box> missing{wanted};
  if (const auto made = reader.of.outputs.find(layer); made != reader.of.outputs.end())
    fill(reader, made->second, part, missing);
  if (missing.empty()) return part;
  if (parts_.contents.has.forward[layer])
    miss(fmt::format("needs the output of {} ({}), which is not there", name_of(layer),
                     text_of(missing.front(), parts_.maps.tensor(layer))));
  for (const Box& box : missing) see_through(reader, layer, box, part);
  return part;
}

/// The output of a layer that computes nothing, from that of its inputs.
template <class Real>
void PartValues<Real>::see_through(const Reader& reader, std::uint32_t view, const Box& wanted,
                                   Part<Real>& to) {
  const Layer& layer = model().layers[view];
  KernelCall<Real> call;
  call.layer = &layer;
  std::vector<Tensor<Real>> inputs;
  for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
    const Box read = parts_.maps.read(view, k, wanted);
    const Box all = layer.inputs[k] == image_input
                        ? parts_.maps.image_tensor()
                        : parts_.maps.tensor(static_cast<std::size_t>(layer.inputs[k]));
    inputs.push_back(tensor_of(output(reader, layer.inputs[k], read, whole_images(all, wanted)),
                               model().shape_of(layer.inputs[k])));
  }
  for (const Tensor<Real>& input : inputs) call.inputs.push_back(&input);
  copy_values(Part<Real>(whole_images(parts_.maps.tensor(view), wanted), forward_kernel(call).values), wanted,
              to);
}

// Operations.

template <class Real>
void PartValues<Real>::run(const OpMeaning& means, std::int64_t first, std::uint64_t began,
                           const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients) {
  const Operation& operation = parts_.lesson.graph.operations[means.operation];
  const Reader reader{micro_batches_[means.micro_batch], &means, first, began};
  const Box work = parts_.in_layout(means.layout, id_, parts_.maps.work(operation.layer));
  if (work.empty()) return;
  if (operation.part == OperationPart::loss)
    loss(reader, operation, elements_alone(work));
  else if (operation.part == OperationPart::gradient_sum)
    add_up(reader, operation.layer, elements_alone(work));
  else
    compute(reader, operation, work, parameters, gradients);
}

template <class Real>
void PartValues<Real>::loss(const Reader& reader, const Operation& operation, const Box& work) {
  const std::uint32_t layer = operation.layer;
  const Box frame = whole_images(parts_.maps.tensor(layer), work);
  const std::vector<std::int32_t> labels = labelled(reader, work[Box::images]).labels;
  const OpId op = reader.means->operation;
  if (operation.phase != Phase::forward) {
    const Tensor<Real> result = tensor_of(loss_input(reader, layer, frame), model().layers[layer].output);
    reader.of.gradients[layer][{{op, 0}}].push_back(
        {Part<Real>(frame, cross_entropy_gradient(result, labels, scale_).values), op});
    return;
  }
  Piece read{output(reader, static_cast<LayerIndex>(layer), frame, frame), op};
  if (reader.means->is_dropped) read.pass = reader.means->pass;
  const Tensor<Real> result = tensor_of(read.part, model().layers[layer].output);
  reader.of.losses[layer].push_back(std::move(read));
  if (!reader.of.counted.insert({op, work}).second) return;
  // Where all of a group have an image's loss, the first counts it.
  std::vector<std::int32_t> own_labels;
  Tensor<Real> own;
  own.shape = result.shape;
  std::size_t place = 0;
  for (const IndexRange& range : work[Box::images])
    for (std::int64_t i = range.begin; i < range.end; ++i, ++place) {
      bool is_first = true;
      if (reader.means->layout != no_meaning)
        for (std::uint32_t d = 0; d < parts_.meaning.positions[id_]; ++d) {
          const Box other =
              in_region(parts_.meaning.layouts[reader.means->layout][d], parts_.maps.tensor(layer));
          is_first = is_first && !(contains(other[Box::images], i) && !other.empty());
        }
      if (!is_first) continue;
      const Real* values = result.image(static_cast<std::int64_t>(place));
      own.values.insert(own.values.end(), values, values + result.size());
      own_labels.push_back(labels[place]);
      ++own.images;
    }
  loss_ += cross_entropy(own, own_labels);
}

template <class Real>
Part<Real> PartValues<Real>::loss_input(const Reader& reader, std::uint32_t layer, const Box& wanted) const {
  Part<Real> part(wanted);
  std::vector<Box> missing{wanted};
  if (const auto read = reader.of.losses.find(layer); read != reader.of.losses.end())
    fill(reader, read->second, part, missing);
  if (!missing.empty()) miss(fmt::format("needs the loss of {}, which is not there", name_of(layer)));
  return part;
}

template <class Real>
typename PartValues<Real>::Frame PartValues<Real>::frame_of(std::uint32_t layer, const Box& work) const {
  const Layer& of = model().layers[layer];
  Frame frame{of, {}, whole_images(parts_.maps.tensor(layer), work)};
  for (std::size_t k = 0; k < of.inputs.size(); ++k)
    frame.inputs.push_back(whole_images(of.inputs[k] == image_input
                                            ? parts_.maps.image_tensor()
                                            : parts_.maps.tensor(static_cast<std::size_t>(of.inputs[k])),
                                        work));
  const auto* norm = std::get_if<Normalization>(&of.kind);
  if (!norm || norm->over != Normalization::Over::batch || of.output.size() != 3) return frame;
  for (Box* box : {&frame.inputs.front(), &frame.output})
    (*box)[Box::rows] = work[Box::rows], (*box)[Box::columns] = work[Box::columns];
  frame.layer.output = {of.output[0], count(work[Box::rows]), count(work[Box::columns])};
  return frame;
}

template <class Real>
Tensor<Real> PartValues<Real>::input_of(const Reader& reader, const Frame& frame, std::uint32_t layer,
                                        std::size_t k, const Box& work) {
  const LayerIndex input = frame.layer.inputs[k];
  Shape shape = model().shape_of(input);
  if (frame.layer.output != model().layers[layer].output) shape = frame.layer.output;
  if (parts_.reads_input(reader.means->operation, k))
    return tensor_of(output(reader, input, parts_.maps.read(layer, k, work), frame.inputs[k]),
                     std::move(shape));
  Tensor<Real> unread(std::move(shape), count(frame.inputs[k][Box::images]));
  std::fill(unread.values.begin(), unread.values.end(), std::numeric_limits<Real>::quiet_NaN());
  return unread;
}

template <class Real>
void PartValues<Real>::compute(const Reader& reader, const Operation& operation, const Box& work,
                               const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients) {
  const std::uint32_t layer = operation.layer;
  if (std::holds_alternative<Dropout>(model().layers[layer].kind) && work[Box::images].size() > 1) {
    for (const IndexRange& range : work[Box::images]) {  // a mask goes by the number of the first image
      Box part = work;
      part[Box::images] = {range};
      compute(reader, operation, part, parameters, gradients);
    }
    return;
  }
  const bool needs_parameters = operation.phase != Phase::weight_gradient;
  if (needs_parameters) need_parameters(reader, layer, work);
  const Frame frame = frame_of(layer, work);
  const Box own = elements_alone(work);
  KernelCall<Real> call;
  call.layer = &frame.layer;
  std::vector<Tensor<Real>> inputs;
  for (std::size_t k = 0; k < frame.inputs.size(); ++k)
    inputs.push_back(input_of(reader, frame, layer, k, work));
  for (const Tensor<Real>& input : inputs) call.inputs.push_back(&input);
  // Of sums over inputs, the bias is added by who has the first input.
  const std::vector<std::size_t>& of_layer = parts_.lesson.index.parameters_of(layer);
  const bool adds_bias = contains(work[Box::inputs], 0);
  std::vector<Real> no_bias;
  for (std::size_t n = 0; n < of_layer.size() && needs_parameters; ++n) {
    const std::vector<Real>& values = parameters[of_layer[n]];
    if (n > 0 && !adds_bias) no_bias.assign(values.size(), Real{0});
    call.parameters.push_back(n > 0 && !adds_bias ? &no_bias : &values);
  }
  call.seed = parts_.lesson.seed, call.step = step_, call.index = layer;
  call.first_image = reader.first + work[Box::images].front().begin;
  if (operation.phase == Phase::forward) {
    Piece made{cut(Part<Real>(frame.output, forward_kernel(call).values), own), reader.means->operation};
    if (reader.means->is_dropped) made.pass = reader.means->pass;
    const bool is_sum = work[Box::inputs] != parts_.maps.work(layer)[Box::inputs];
    (is_sum ? reader.of.sums : reader.of.outputs)[layer].push_back(std::move(made));
    const auto* norm = std::get_if<Normalization>(&frame.layer.kind);
    if (norm && norm->over == Normalization::Over::batch &&
        reader.of.counted.insert({reader.means->operation, own}).second)
      update_running(call, running_[layer]);
    return;
  }
  const Tensor<Real> of_output =
      tensor_of(gradient(reader, layer, parts_.contents.whole[layer], own, frame.output), frame.layer.output);
  if (operation.phase == Phase::data_gradient) {
    Tensor<Real> made;
    if (parts_.reads_output(reader.means->operation)) {
      made = tensor_of(output(reader, static_cast<LayerIndex>(layer), own, frame.output), frame.layer.output);
      call.output = &made;
    }
    std::vector<Tensor<Real>> results = data_gradient_kernel(call, of_output);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const LayerIndex input = frame.layer.inputs[k];
      if (input == image_input) continue;
      reader.of
          .gradients[static_cast<std::uint32_t>(input)]
                    [{parts_.contents.made(reader.means->operation, {layer, k})}]
          .push_back({cut(Part<Real>(frame.inputs[k], std::move(results[k].values)),
                          parts_.maps.read(layer, k, work)),
                      reader.means->operation});
    }
    return;
  }
  const std::vector<std::vector<Real>> results = weight_gradient_kernel(call, of_output);
  for (std::size_t n = 0; n < of_layer.size(); ++n) {
    std::vector<Real>& sum = gradients[of_layer[n]];
    sum.resize(results[n].size(), Real{0});
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += results[n][e];
  }
}

template class PartValues<double>;
template class PartValues<float>;

}  // namespace convoy::numerics
