// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/numerics/part_values.h"

namespace convoy::inline numerics {

template <class Real>
typename PartValues<Real>::Carried PartValues<Real>::send(const CommMeaning::Result& result,
                                                          const CommMeaning& means, std::int64_t first,
                                                          std::uint64_t now) {
  const Reader reader{micro_batches_[means.micro_batch], nullptr, first, now};
  const Box box = parts_.in_layout(result.from, id_, parts_.tensor(result));
  Carried carried{Part<Real>(box)};
  if (result.operation == no_meaning) {
    if (parts_.is_image_view(result.layer))
      need_view(reader, result.layer, {box});
    else
      need_images(reader, box);
    return carried;
  }
  const Operation& operation = parts_.lesson.graph.operations[result.operation];
  if (box.empty()) return carried;
  if (operation.phase == Phase::forward && operation.part == OperationPart::loss) {
    carried.part = loss_input(reader, result.layer, box);
    return carried;
  }
  if (operation.phase == Phase::forward) {
    if (const auto own = reader.of.outputs.find(operation.layer); own != reader.of.outputs.end())
      for (const Piece& piece : own->second)
        if (overlap(piece.part.box, box)) carried.pass = piece.pass;
    if (means.kind == CommMeaning::Kind::results) {
      carried.part = output(reader, static_cast<LayerIndex>(result.layer), box, box);
      return carried;
    }
    std::vector<Box> missing{box};
    if (const auto own = reader.of.sums.find(result.layer); own != reader.of.sums.end()) {
      fill(reader, own->second, carried.part, missing);
      carried.pass = own->second.back().pass;
    }
    if (!missing.empty())
      miss(fmt::format("has not all of the part of {} that it sends", name_of(result.layer)));
    return carried;
  }
  if (parts_.adds_all && means.kind == CommMeaning::Kind::parts) {
    carried.part = own_terms(reader, result.layer, box);
    carried.parts = parts_.contents.whole[result.layer];
    return carried;
  }
  ListedGradients all;
  list(reader, result.layer, box, all, result.operation);
  // As far as the operation has added it up. What reads a tensor by several inputs is in the message as often, each time
  // with another part.
  const CommMeaning::Result* const of_message = means.results.data();
  auto skipped = std::count(of_message, &result, result);
  GradientParts parts;
  for (const auto& [each, is_summand] : all)
    if (each.size() > parts.size() || (each.size() == parts.size() && skipped-- > 0)) parts = each;
  if (parts.empty())
    miss(
        fmt::format("sends what {} makes for {}, which is not there", operation.name, name_of(result.layer)));
  const Missing may_be = means.kind != CommMeaning::Kind::parts ? Missing::nothing
                         : parts_.meaning.has_images.empty()    ? Missing::made_by_others
                                                                : Missing::anything;
  carried.part = gradient(reader, result.layer, parts, box, box, may_be);
  carried.parts = std::move(parts);
  return carried;
}

template <class Real>
void PartValues<Real>::receive(const CommMeaning::Result& result, const CommMeaning& means,
                               const std::vector<const Carried*>& sent, bool in_group, std::uint64_t now) {
  MicroBatch& of = micro_batches_[means.micro_batch];
  const Box to = parts_.in_layout(result.to, id_, parts_.tensor(result));
  if (to.empty()) return;
  if (result.operation == no_meaning) {
    std::vector<Come>& come = parts_.is_image_view(result.layer) ? of.views[result.layer] : of.images;
    for (const Carried* each : sent) come.push_back({intersection(each->part.box, to), now});
    return;
  }
  const Operation& operation = parts_.lesson.graph.operations[result.operation];
  const Phase phase = operation.phase;
  if (means.kind == CommMeaning::Kind::parts && !in_group) {
    for (const Carried* each : sent)
      if (Part<Real> part = cut(each->part, to); !part.box.empty())
        of.come[result.layer][each->parts].push_back({std::move(part), result.operation, now});
    return;
  }
  if (means.kind == CommMeaning::Kind::parts) {
    Piece sum{Part<Real>(to), result.operation, now};
    GradientParts parts;
    for (const Carried* each : sent) {
      copy_values(each->part, to, sum.part, true);
      if (each->parts.size() > parts.size()) parts = each->parts;
      sum.pass = each->pass;
    }
    if (phase == Phase::forward) {
      of.outputs[result.layer].push_back(std::move(sum));
      return;
    }
    // In place of the device's own part of the sum.
    const Box own = parts_.in_layout(result.from, id_, parts_.tensor(result));
    Pieces& pieces = of.gradients[result.layer][parts];
    std::erase_if(pieces, [&](const Piece& piece) { return overlap(piece.part.box, own); });
    pieces.push_back(std::move(sum));
    return;
  }
  for (const Carried* each : sent) {
    Piece piece{cut(each->part, to), result.operation, now, in_group ? each->pass : std::nullopt};
    if (piece.part.box.empty()) continue;
    Pieces& made = phase != Phase::forward                 ? of.gradients[result.layer][each->parts]
                   : operation.part == OperationPart::loss ? of.losses[result.layer]
                                                           : of.outputs[result.layer];
    made.push_back(std::move(piece));
  }
}

// One by one: the class is instantiated in part_values.cpp.
template PartValues<double>::Carried PartValues<double>::send(const CommMeaning::Result&, const CommMeaning&,
                                                              std::int64_t, std::uint64_t);
template void PartValues<double>::receive(const CommMeaning::Result&, const CommMeaning&,
                                          const std::vector<const Carried*>&, bool, std::uint64_t);
template PartValues<float>::Carried PartValues<float>::send(const CommMeaning::Result&, const CommMeaning&,
                                                            std::int64_t, std::uint64_t);
template void PartValues<float>::receive(const CommMeaning::Result&, const CommMeaning&,
                                         const std::vector<const Carried*>&, bool, std::uint64_t);

}  // namespace convoy::numerics
