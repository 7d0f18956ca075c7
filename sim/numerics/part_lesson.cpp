// SPDX-License-Identifier: MIT
#include "sim/numerics/part_lesson.h"

#include <algorithm>

namespace convoy::inline numerics {

PartLesson::PartLesson(const Lesson& of, const Meaning& with, std::int64_t images)
    : lesson(of),
      meaning(with),
      maps(of.graph, images),
      contents(of.graph, of.index),
      layout_of_(of.graph.operations.size(), no_meaning) {
  for (const OpMeaning& means : meaning.operations) {
    if (means.act == OpMeaning::Act::compute && means.operation != no_meaning)
      layout_of_[means.operation] = means.layout;
    adds_gradients = adds_gradients || means.micro_batch > 0;
    adds_all = adds_all || (means.act == OpMeaning::Act::add && means.operation == no_meaning);
  }
  for (const CommMeaning& means : meaning.communications)
    for (const CommMeaning::Result& result : means.results)
      if (result.operation != no_meaning &&
          of.graph.operations[result.operation].phase == Phase::weight_gradient)
        sends_gradients_of.insert(result.layer);
  for (const CommMeaning& means : meaning.communications)
    if (means.kind == CommMeaning::Kind::parts && adds_all)
      for (const CommMeaning::Result& result : means.results) added_by[result.layer] = result.to;
  for (const Buffer& buffer : of.graph.buffers)
    if (buffer.role == BufferRole::image) reads_images_.insert(buffer.uses.begin(), buffer.uses.end());
}

bool PartLesson::reads_forward(OpId operation, std::uint32_t layer) const {
  const std::vector<OpId>& inputs = lesson.graph.operations[operation].inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](OpId input) {
    const Operation& read = lesson.graph.operations[input];
    return read.phase == Phase::forward && read.part == OperationPart::layer && read.layer == layer;
  });
}

bool PartLesson::is_image_view(std::uint32_t layer) const {
  return !meaning.image_views.empty() &&
         contents.has.source_of(lesson.graph.model, static_cast<LayerIndex>(layer)) == image_input;
}

bool PartLesson::reads_input(OpId operation, std::size_t k) const {
  const Model& model = lesson.graph.model;
  const LayerIndex input =
      contents.has.source_of(model, model.layers[lesson.graph.operations[operation].layer].inputs[k]);
  return input == image_input ? reads_images_.contains(operation)
                              : reads_forward(operation, static_cast<std::uint32_t>(input));
}

bool PartLesson::reads_output(OpId operation) const {
  const Operation& of = lesson.graph.operations[operation];
  return of.phase == Phase::data_gradient && reads_forward(operation, of.layer);
}

Box PartLesson::in_layout(std::uint32_t layout, EndpointId endpoint, const Box& whole) const {
  if (layout == no_meaning) return whole;
  const PartLayout& of = meaning.layouts.at(layout);
  return in_region(of.size() == 1 ? of.front() : of.at(meaning.positions[endpoint]), whole);
}

Box PartLesson::parameter_part(std::uint32_t layer, const Box& work) const {
  Box part = maps.work(lesson.graph.model.parameter_owner(layer));
  part[Box::channels] = work[Box::channels], part[Box::inputs] = work[Box::inputs];
  return part;
}

bool PartLesson::has_element(std::size_t parameter, std::size_t element, const Box& part) const {
  const Parameter& of = lesson.graph.parameters[parameter];
  const Box whole = maps.work(of.layer);
  if (part[Box::channels] == whole[Box::channels] && part[Box::inputs] == whole[Box::inputs]) return true;
  const auto elements = static_cast<std::size_t>(of.elements);
  const std::size_t of_channel = elements / static_cast<std::size_t>(count(whole[Box::channels]));
  if (!contains(part[Box::channels], static_cast<std::int64_t>(element / of_channel))) return false;
  if (of.tensor > 0 || part[Box::inputs] == whole[Box::inputs]) return true;
  const std::size_t of_input = of_channel / static_cast<std::size_t>(count(whole[Box::inputs]));
  return contains(part[Box::inputs], static_cast<std::int64_t>(element % of_channel / of_input));
}

}  // namespace convoy::numerics
