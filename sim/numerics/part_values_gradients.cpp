// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/numerics/part_values.h"

namespace convoy::inline numerics {

template <class Real>
bool PartValues<Real>::is_made(std::uint32_t layer, const GradientParts& parts, const Box& box,
                               bool here) const {
  const TrainingGraph& graph = parts_.lesson.graph;
  for (const Maker& maker : parts)
    if (maker.second == 0 && graph.operations[maker.first].layer == layer) return true;  // a loss
  for (const GradientContents::Slot& reader : parts_.lesson.index.readers_of(layer)) {
    const GradientParts of_reader = parts_.contents.through(parts, reader);
    if (of_reader.empty()) continue;
    const Box read = parts_.maps.readers(reader.first, reader.second, box);
    if (read.empty()) continue;
    const bool is_own = parts_.contents.has.data_gradient[reader.first]
                            ? !here || overlap(read, parts_.own_work(of_reader.front().first, id_))
                            : is_made(reader.first, of_reader, elements_alone(read), here);
    if (is_own) return true;
  }
  return false;
}

template <class Real>
Part<Real> PartValues<Real>::gradient(const Reader& reader, std::uint32_t layer, const GradientParts& parts,
                                      const Box& wanted, const Box& frame, Missing may_be) {
  Part<Real> part(frame);
  std::vector<Box> missing{wanted};
  std::erase_if(missing, [](const Box& box) { return box.empty(); });
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    if (const auto made = of->second.find(parts); made != of->second.end())
      fill(reader, made->second, part, missing);
  if (!missing.empty()) hand_on(reader, layer, parts, part, missing);
  for (const Box& box : missing)  // of what nothing reads the gradient is zero
    if (may_be != Missing::anything && is_made(layer, parts, box, may_be == Missing::made_by_others))
      miss(fmt::format("needs the gradient of the output of {} ({}), which is not there", name_of(layer),
                       text_of(box, parts_.maps.tensor(layer))));
  return part;
}

/// Of a layer that hands its gradient on as it is.
template <class Real>
void PartValues<Real>::hand_on(const Reader& reader, std::uint32_t layer, const GradientParts& parts,
                               Part<Real>& to, std::vector<Box>& missing) {
  for (const GradientContents::Slot& view : parts_.lesson.index.readers_of(layer)) {
    const auto& [reader_layer, k] = view;
    if (parts_.contents.has.data_gradient[reader_layer] || missing.empty()) continue;
    const std::optional<GradientParts> of_view = parts_.contents.taken_from(parts, view);
    if (!of_view) continue;
    ListedGradients all;
    list(reader, reader_layer, parts_.maps.tensor(reader_layer), all);
    if (!all.contains(*of_view)) continue;
    for (const Box& box : std::exchange(missing, {})) {
      const Box read = elements_alone(parts_.maps.readers(reader_layer, k, box));
      const Box frame = whole_images(parts_.maps.tensor(reader_layer), box);
      copy_values(handed_on(view, gradient(reader, reader_layer, *of_view, read, frame)), box, to);
    }
  }
}

/// What a layer that hands its gradient on makes of it for an input.
template <class Real>
Part<Real> PartValues<Real>::handed_on(const GradientContents::Slot& view, Part<Real> gradient) const {
  const Layer& of = model().layers[view.first];
  KernelCall<Real> call;
  call.layer = &of;
  std::vector<Tensor<Real>> shapes;  // such layers read no values for their gradients
  for (const LayerIndex input : of.inputs) shapes.emplace_back(model().shape_of(input), 0);
  for (const Tensor<Real>& shape : shapes) call.inputs.push_back(&shape);
  const Box whole =
      whole_images(parts_.maps.tensor(static_cast<std::size_t>(of.inputs[view.second])), gradient.box);
  std::vector<Tensor<Real>> results = data_gradient_kernel(call, tensor_of(std::move(gradient), of.output));
  return {whole, std::move(results[view.second].values)};
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
  for (const GradientContents::Slot& view : parts_.lesson.index.readers_of(layer)) {
    if (parts_.contents.has.data_gradient[view.first]) continue;
    const Box read = parts_.maps.readers(view.first, view.second, box);
    if (read.empty()) continue;
    ListedGradients of_view;
    list(reader, view.first, elements_alone(read), of_view, only);
    for (const auto& [parts, is_summand] : of_view) all[parts_.contents.handed_on(parts, view)] |= is_summand;
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
  for (const Maker& maker : parts_.contents.whole[layer])  // what makes nothing for these elements is zero
    if (!is_made(layer, {maker}, box, false)) all.try_emplace({maker}, is_summand(reader, maker.first));
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
  // By the way that they come; the device may have nothing of its own: no filters.
  ListedGradients all;
  list(reader, means.layer, box, all, means.operation);
  for (const auto& [parts, pieces] : reader.of.come[means.layer])
    if (parts.front().first == means.operation) all.try_emplace(parts);
  for (const auto& [parts, is_summand] : all) {
    Part<Real> sum = gradient(reader, means.layer, parts, box, box, Missing::anything);
    for (const Piece& piece : reader.of.come[means.layer][parts])
      if (is_visible(reader, piece)) copy_values(piece.part, box, sum, true);
    reader.of.gradients[means.layer][parts].push_back({std::move(sum), means.operation});
  }
}

template <class Real>
Part<Real> PartValues<Real>::own_terms(const Reader& reader, std::uint32_t layer, const Box& box) {
  Part<Real> sum(box);
  if (const auto of = reader.of.gradients.find(layer); of != reader.of.gradients.end())
    for (const auto& [parts, pieces] : of->second)
      for (const Piece& piece : pieces)
        if (piece.operation != no_meaning && is_visible(reader, piece))
          copy_values(piece.part, box, sum, true);
  for (const GradientContents::Slot& view : parts_.lesson.index.readers_of(layer)) {
    if (parts_.contents.has.data_gradient[view.first]) continue;
    Box read = elements_alone(parts_.maps.readers(view.first, view.second, box));
    // Elements that another device adds up, that one hands on.
    if (const auto added = parts_.added_by.find(view.first); added != parts_.added_by.end())
      read = intersection(read, parts_.in_layout(added->second, id_, parts_.maps.tensor(view.first)));
    if (read.empty()) continue;
    Part<Real> of_view(whole_images(parts_.maps.tensor(view.first), box));
    copy_values(complete(reader, view.first, read), read, of_view);
    copy_values(handed_on(view, std::move(of_view)), box, sum, true);
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
template bool PartValues<double>::is_made(std::uint32_t, const GradientParts&, const Box&, bool) const;
template Part<double> PartValues<double>::gradient(const Reader&, std::uint32_t, const GradientParts&,
                                                   const Box&, const Box&, Missing);
template void PartValues<double>::hand_on(const Reader&, std::uint32_t, const GradientParts&, Part<double>&,
                                          std::vector<Box>&);
template void PartValues<double>::list(const Reader&, std::uint32_t, const Box&, ListedGradients&,
                                       OpId) const;
template Part<double> PartValues<double>::handed_on(const GradientContents::Slot&, Part<double>) const;
template bool PartValues<double>::is_summand(const Reader&, OpId) const;
template void PartValues<double>::add_up(const Reader&, std::uint32_t, const Box&);
template void PartValues<double>::add(const OpMeaning&, std::uint64_t);
template Part<double> PartValues<double>::own_terms(const Reader&, std::uint32_t, const Box&);
template Part<double> PartValues<double>::complete(const Reader&, std::uint32_t, const Box&);
template void PartValues<double>::add_all(const Reader&, const OpMeaning&);
template bool PartValues<float>::is_made(std::uint32_t, const GradientParts&, const Box&, bool) const;
template Part<float> PartValues<float>::gradient(const Reader&, std::uint32_t, const GradientParts&,
                                                 const Box&, const Box&, Missing);
template void PartValues<float>::hand_on(const Reader&, std::uint32_t, const GradientParts&, Part<float>&,
                                         std::vector<Box>&);
template void PartValues<float>::list(const Reader&, std::uint32_t, const Box&, ListedGradients&, OpId) const;
template Part<float> PartValues<float>::handed_on(const GradientContents::Slot&, Part<float>) const;
template bool PartValues<float>::is_summand(const Reader&, OpId) const;
template void PartValues<float>::add_up(const Reader&, std::uint32_t, const Box&);
template void PartValues<float>::add(const OpMeaning&, std::uint64_t);
template Part<float> PartValues<float>::own_terms(const Reader&, std::uint32_t, const Box&);
template Part<float> PartValues<float>::complete(const Reader&, std::uint32_t, const Box&);
template void PartValues<float>::add_all(const Reader&, const OpMeaning&);

}  // namespace convoy::numerics
