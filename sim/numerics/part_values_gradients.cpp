// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/numerics/part_values.h"

namespace convoy::inline numerics {

template <class Real>
bool PartValues<Real>::is_made(std::uint32_t layer, const GradientParts& parts, const Box& box) const {
  const TrainingGraph& graph = parts_.lesson.graph;
  for (const OpId op : parts)
    if (graph.operations[op].part == OperationPart::loss && graph.operations[op].layer == layer) return true;
  for (const std::uint32_t reader : parts_.lesson.index.readers_of(layer)) {
    const std::vector<LayerIndex>& inputs = model().layers[reader].inputs;
    const auto k = static_cast<std::size_t>(
        std::find(inputs.begin(), inputs.end(), static_cast<LayerIndex>(layer)) - inputs.begin());
    const Box read = parts_.maps.readers(reader, k, box);
    if (read.empty()) continue;
    if (!parts_.contents.has_data_gradient[reader]) {
      if (is_made(reader, parts, elements_alone(read))) return true;
      continue;
    }
    if (std::any_of(parts.begin(), parts.end(), [&](OpId op) {
          return graph.operations[op].layer == reader && graph.operations[op].part == OperationPart::layer;
        }))
      return true;
  }
  return false;
}

template <class Real>
Part<Real> PartValues<Real>::gradient(const Reader& reader, std::uint32_t layer, const GradientParts& parts,
                                      const Box& wanted, const Box& frame, bool is_part) {
  Part<Real> part(frame);
  std::vector<Box> missing{wanted};
  std::erase_if(missing, [](const Box& box) { return box.empty(); });
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    if (const auto made = of->second.find(parts); made != of->second.end())
      fill(reader, made->second, part, missing);
  if (!missing.empty()) hand_on(reader, layer, parts, part, missing);
  for (const Box& box : missing)  // of what nothing reads the gradient is zero
    if (!is_part && is_made(layer, parts, box))
      miss(fmt::format("needs the gradient of the output of {} ({}), which is not there", name_of(layer),
                       text_of(box, parts_.maps.tensor(layer))));
  return part;
}

/// Of a layer that hands its gradient on as it is.
template <class Real>
void PartValues<Real>::hand_on(const Reader& reader, std::uint32_t layer, const GradientParts& parts,
                               Part<Real>& to, std::vector<Box>& missing) {
  for (const std::uint32_t view : parts_.lesson.index.readers_of(layer)) {
    if (parts_.contents.has_data_gradient[view] || missing.empty()) continue;
    const Layer& of = model().layers[view];
    ListedGradients all;
    list(reader, view, parts_.maps.tensor(view), all);
    if (!all.contains(parts)) continue;
    KernelCall<Real> call;
    call.layer = &of;
    std::vector<Tensor<Real>> shapes;  // such layers read no values for their gradients
    std::size_t k = 0;
    for (std::size_t n = 0; n < of.inputs.size(); ++n) {
      if (of.inputs[n] == static_cast<LayerIndex>(layer)) k = n;
      shapes.emplace_back(model().shape_of(of.inputs[n]), 0);
    }
    for (const Tensor<Real>& shape : shapes) call.inputs.push_back(&shape);
    for (const Box& box : std::exchange(missing, {})) {
      const Box read = elements_alone(parts_.maps.readers(view, k, box));
      const Box frame = whole_images(parts_.maps.tensor(view), box);
      const std::vector<Tensor<Real>> results =
          data_gradient_kernel(call, tensor_of(gradient(reader, view, parts, read, frame), of.output));
      copy_values(Part<Real>(whole_images(parts_.maps.tensor(layer), box), results[k].values), box, to);
    }
  }
}

template <class Real>
void PartValues<Real>::list(const Reader& reader, std::uint32_t layer, const Box& box, ListedGradients& all,
                            OpId only) const {
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    for (const auto& [parts, pieces] : of->second)
      for (const Piece& piece : pieces)
        if (is_visible(reader, piece) && overlap(piece.part.box, box) &&
            (only == no_meaning || piece.operation == only))
          all[parts] |= is_summand(reader, piece.operation);
  for (const std::uint32_t view : parts_.lesson.index.readers_of(layer)) {
    if (parts_.contents.has_data_gradient[view]) continue;
    const std::vector<LayerIndex>& inputs = model().layers[view].inputs;
    const auto k = static_cast<std::size_t>(
        std::find(inputs.begin(), inputs.end(), static_cast<LayerIndex>(layer)) - inputs.begin());
    if (const Box read = parts_.maps.readers(view, k, box); !read.empty())
      list(reader, view, elements_alone(read), all, only);
  }
}

template <class Real>
bool PartValues<Real>::is_summand(const Reader& reader, OpId made) const {
  return reader.means && reader.means->operation != no_meaning && made != no_meaning &&
         reads(parts_.lesson.graph, reader.means->operation, made);
}

/// Adds up two parts of a gradient, as DeviceValues does.
template <class Real>
void PartValues<Real>::add_up(const Reader& reader, std::uint32_t layer, const Box& box) {
  ListedGradients all;
  list(reader, layer, box, all);
  const std::optional<TwoParts> two = two_to_add_up(all, parts_.contents.whole[layer]);
  if (!two)
    miss(fmt::format("has nothing to add up of the gradient of the output of {}: a part is missing",
                     name_of(layer)));
  Part<Real> sum = gradient(reader, layer, two->first, box, box);
  copy_values(gradient(reader, layer, two->second, box, box), box, sum, true);
  reader.of.gradients[layer][two->both].push_back({std::move(sum), reader.means->operation});
}

template <class Real>
void PartValues<Real>::add(const OpMeaning& means, std::uint64_t began) {
  const Reader reader{micro_batches_[means.micro_batch], &means, 0, began};
  const Box box = parts_.in_layout(means.layout, id_, parts_.maps.tensor(means.layer));
  if (means.operation == no_meaning) {
    add_all(reader, means);
    return;
  }
  const GradientParts of{means.operation};
  // The device may have nothing of its own: no filters.
  ListedGradients own;
  list(reader, means.layer, box, own, means.operation);
  Part<Real> sum = own.contains(of) ? gradient(reader, means.layer, of, box, box, true) : Part<Real>(box);
  for (const Piece& piece : reader.of.come[means.layer][of])
    if (is_visible(reader, piece)) copy_values(piece.part, box, sum, true);
  reader.of.gradients[means.layer][of].push_back({std::move(sum), means.operation});
}

template <class Real>
Part<Real> PartValues<Real>::own_terms(const Reader& reader, std::uint32_t layer, const Box& box) {
  Part<Real> sum(box);
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    for (const auto& [parts, pieces] : of->second)
      for (const Piece& piece : pieces)
        if (piece.operation != no_meaning && is_visible(reader, piece))
          copy_values(piece.part, box, sum, true);
  for (const std::uint32_t view : parts_.lesson.index.readers_of(layer)) {
    if (parts_.contents.has_data_gradient[view]) continue;
    const Layer& of = model().layers[view];
    KernelCall<Real> call;
    call.layer = &of;
    std::vector<Tensor<Real>> shapes;  // such layers read no values for their gradients
    std::size_t k = 0;
    for (std::size_t n = 0; n < of.inputs.size(); ++n) {
      if (of.inputs[n] == static_cast<LayerIndex>(layer)) k = n;
      shapes.emplace_back(model().shape_of(of.inputs[n]), 0);
    }
    for (const Tensor<Real>& shape : shapes) call.inputs.push_back(&shape);
    Box read = elements_alone(parts_.maps.readers(view, k, box));
    // Elements that another device adds up, that one hands on.
    if (const auto added = parts_.added_by.find(view); added != parts_.added_by.end())
      read = intersection(read, parts_.in_layout(added->second, id_, parts_.maps.tensor(view)));
    if (read.empty()) continue;
    Part<Real> of_view(whole_images(parts_.maps.tensor(view), box));
    copy_values(complete(reader, view, read), read, of_view);
    std::vector<Tensor<Real>> results = data_gradient_kernel(call, tensor_of(std::move(of_view), of.output));
    copy_values(Part<Real>(whole_images(parts_.maps.tensor(layer), box), std::move(results[k].values)), box,
                sum, true);
  }
  return sum;
}

template <class Real>
Part<Real> PartValues<Real>::complete(const Reader& reader, std::uint32_t layer, const Box& box) {
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    if (const auto made = of->second.find(parts_.contents.whole[layer]); made != of->second.end())
      for (auto piece = made->second.rbegin(); piece != made->second.rend(); ++piece)
        if (piece->operation == no_meaning && is_visible(reader, *piece) &&
            intersection(piece->part.box, box) == box)
          return cut(piece->part, box);
  return own_terms(reader, layer, box);
}

/// What a device adds up before it sends it, it adds up again when it is sent.
template <class Real>
void PartValues<Real>::add_all(const Reader& reader, const OpMeaning& means) {
  if (const auto added = parts_.added_by.find(means.layer);
      added != parts_.added_by.end() && added->second != means.layout)
    return;
  const Box box = parts_.in_layout(means.layout, id_, parts_.maps.tensor(means.layer));
  Part<Real> sum = own_terms(reader, means.layer, box);
  for (const auto& [parts, pieces] : reader.of.come[means.layer])
    for (const Piece& piece : pieces)
      if (is_visible(reader, piece)) copy_values(piece.part, box, sum, true);
  reader.of.gradients[means.layer][parts_.contents.whole[means.layer]].push_back(
      {std::move(sum), no_meaning});
}

// One by one: the class is instantiated in part_values.cpp.
template bool PartValues<double>::is_made(std::uint32_t, const GradientParts&, const Box&) const;
template Part<double> PartValues<double>::gradient(const Reader&, std::uint32_t, const GradientParts&,
                                                   const Box&, const Box&, bool);
template void PartValues<double>::hand_on(const Reader&, std::uint32_t, const GradientParts&, Part<double>&,
                                          std::vector<Box>&);
template void PartValues<double>::list(const Reader&, std::uint32_t, const Box&, ListedGradients&,
                                       OpId) const;
template bool PartValues<double>::is_summand(const Reader&, OpId) const;
template void PartValues<double>::add_up(const Reader&, std::uint32_t, const Box&);
template void PartValues<double>::add(const OpMeaning&, std::uint64_t);
template Part<double> PartValues<double>::own_terms(const Reader&, std::uint32_t, const Box&);
template Part<double> PartValues<double>::complete(const Reader&, std::uint32_t, const Box&);
template void PartValues<double>::add_all(const Reader&, const OpMeaning&);
template bool PartValues<float>::is_made(std::uint32_t, const GradientParts&, const Box&) const;
template Part<float> PartValues<float>::gradient(const Reader&, std::uint32_t, const GradientParts&,
                                                 const Box&, const Box&, bool);
template void PartValues<float>::hand_on(const Reader&, std::uint32_t, const GradientParts&, Part<float>&,
                                         std::vector<Box>&);
template void PartValues<float>::list(const Reader&, std::uint32_t, const Box&, ListedGradients&, OpId) const;
template bool PartValues<float>::is_summand(const Reader&, OpId) const;
template void PartValues<float>::add_up(const Reader&, std::uint32_t, const Box&);
template void PartValues<float>::add(const OpMeaning&, std::uint64_t);
template Part<float> PartValues<float>::own_terms(const Reader&, std::uint32_t, const Box&);
template Part<float> PartValues<float>::complete(const Reader&, std::uint32_t, const Box&);
template void PartValues<float>::add_all(const Reader&, const OpMeaning&);

}  // namespace convoy::numerics
