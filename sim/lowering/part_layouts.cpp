// SPDX-License-Identifier: MIT
#include "sim/lowering/part_layouts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/locality.h"
#include "sim/lowering/halo.h"
#include "sim/plan/index_set.h"

namespace convoy::inline lowering {
namespace {

using Over = Sharding::Over;

/// The indices of an axis that a device has.
std::vector<std::int64_t> owned_by(const Shards& shards, std::size_t device) {
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < shards.owner.size(); ++i)
    if (shards.owner[i] == device) indices.push_back(static_cast<std::int64_t>(i));
  return indices;
}

}  // namespace

ImageRange images_of_groups(const GraphSchedule& schedule, std::size_t groups, std::int64_t micro_batch) {
  const double images = schedule.parts.front().total();
  return {static_cast<double>(micro_batch) * static_cast<double>(groups) * images, images};
}

PartLayouts::PartLayouts(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, Meaning& meaning)
    : graph_(graph),
      shardings_(shardings),
      schedule_(schedule),
      meaning_(meaning),
      devices_(schedule.parts.front().images.counts.size()) {
  const std::vector<std::int64_t>& all = schedule.parts.front().images.counts;
  std::vector<std::int64_t> next(devices_, 0);  // of each device's images, in the whole batch
  for (std::size_t d = 1; d < devices_; ++d) next[d] = next[d - 1] + all[d - 1];
  images_.emplace_back(static_cast<std::size_t>(schedule.parts.front().images.size));
  std::iota(images_.front().begin(), images_.front().end(), 0);
  for (std::size_t p = 1; p < schedule.parts.size(); ++p) {
    std::vector<std::int64_t>& of_part = images_.emplace_back();
    for (std::size_t d = 0; d < devices_; ++d)
      for (std::int64_t i = 0; i < schedule.parts[p].images.counts[d]; ++i) of_part.push_back(next[d]++);
  }
}

bool PartLayouts::InOrder::operator()(const PartLayout& a, const PartLayout& b) const {
  const auto axes = [](const Region& of) {
    return std::tie(of.images, of.channels, of.rows, of.columns, of.inputs);
  };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](const Region& x, const Region& y) { return axes(x) < axes(y); });
}

std::uint32_t PartLayouts::add(PartLayout layout) {
  const auto [it, fresh] =
      known_.try_emplace(std::move(layout), static_cast<std::uint32_t>(meaning_.layouts.size()));
  if (fresh) meaning_.layouts.push_back(it->first);
  return it->second;
}

IndexRanges PartLayouts::images_of(std::uint32_t part, const Shards& split, std::size_t device) const {
  const std::int64_t first = std::accumulate(
      split.counts.begin(), split.counts.begin() + static_cast<std::ptrdiff_t>(device), std::int64_t{0});
  const auto begin = images_[part].begin() + first;
  return set_of({begin, begin + split.counts[device]});
}

Region PartLayouts::tensor_region(const Sharding& sharding, std::uint32_t part, std::size_t device) const {
  Region region;
  if (part > 0) region.images = set_of(images_[part]);
  if (sharding.over == Over::batch) {
    region.images = images_of(part, *sharding.shards, device);
  } else if (sharding.over == Over::channel) {
    region.channels = set_of(owned_by(*sharding.shards, device));
  } else if (sharding.over == Over::space) {
    region.rows = set_of(owned_by(sharding.grid->rows, sharding.grid->row_of(device)));
    region.columns = set_of(owned_by(sharding.grid->columns, sharding.grid->column_of(device)));
  }
  return region;
}

Region PartLayouts::work_region(std::size_t layer, std::uint32_t part, std::size_t device) const {
  const LayerSharding& sharding = shardings_[layer];
  Region region = tensor_region(sharding.output, part, device);
  if (!sharding.sums_inputs) return region;
  const Sharding& needed = sharding.inputs.front().needed;
  Region of_input = tensor_region(needed, part, device);
  if (needed.over == Over::channel) {
    region.inputs = std::move(of_input.channels);
  } else if (needed.over == Over::space) {  // positions of the image, row by row
    std::vector<std::int64_t> positions;
    const std::int64_t width = graph_.model.shape_of(graph_.model.layers[layer].inputs.front())[2];
    for (const std::int64_t row : owned_by(needed.grid->rows, needed.grid->row_of(device)))
      for (const std::int64_t column : owned_by(needed.grid->columns, needed.grid->column_of(device)))
        positions.push_back(row * width + column);
    region.inputs = set_of(positions);
  }
  return region;
}

std::uint32_t PartLayouts::of_step(std::uint32_t id) {
  const GraphSchedule::Step& step = schedule_.steps[id];
  if (step.op == GraphSchedule::no_op) return no_meaning;
  const auto [it, fresh] = of_steps_.try_emplace(id, no_meaning);
  if (!fresh) return it->second;
  PartLayout layout;
  for (std::size_t d = 0; d < devices_; ++d)
    layout.push_back(step.sharding ? tensor_region(*step.sharding, step.part, d)
                                   : work_region(graph_.operations[step.op].layer, step.part, d));
  return it->second = add(std::move(layout));
}

std::uint32_t PartLayouts::of_parameters(std::uint32_t layer) {
  PartLayout layout;
  for (std::size_t d = 0; d < devices_; ++d) {
    Region region;
    if (shardings_[layer].splits_weights) {
      const Region work = work_region(layer, 0, d);
      region.channels = work.channels;
      region.inputs = work.inputs;
    }
    layout.push_back(std::move(region));
  }
  return add(std::move(layout));
}

std::uint32_t PartLayouts::of_tensor(const Sharding& sharding, std::uint32_t part) {
  PartLayout layout;
  for (std::size_t d = 0; d < devices_; ++d) layout.push_back(tensor_region(sharding, part, d));
  return add(std::move(layout));
}

std::uint32_t PartLayouts::with_halo(const GraphSchedule::Exchange& exchange) {
  const Layer& layer = graph_.model.layers[exchange.layer];
  const SpatialGrid& output = *shardings_[exchange.layer].output.grid;
  const SpatialGrid& input = *shardings_[exchange.layer].inputs[exchange.input].needed.grid;
  const auto rows = rows_held(layer, ImageAxis::height, input.rows, output.rows);
  const auto columns = rows_held(layer, ImageAxis::width, input.columns, output.columns);
  PartLayout layout;
  for (std::size_t d = 0; d < devices_; ++d) {
    Region region = tensor_region({}, exchange.part, d);
    region.rows = set_of(rows[input.row_of(d)]);
    region.columns = set_of(columns[input.column_of(d)]);
    layout.push_back(std::move(region));
  }
  return add(std::move(layout));
}

CommMeaning PartLayouts::of_exchange(const GraphSchedule::Exchange& exchange) {
  using Kind = GraphSchedule::Exchange::Kind;
  CommMeaning meaning;
  CommMeaning::Result result = exchange.result;
  if (exchange.halo) {
    const Sharding& own = shardings_[exchange.layer].inputs[exchange.input].needed;
    const bool back = exchange.kind == Kind::halo_back;
    result.from = back ? with_halo(exchange) : of_tensor(own, exchange.part);
    result.to = back ? of_tensor(own, exchange.part) : with_halo(exchange);
    if (back) meaning.kind = CommMeaning::Kind::parts;
  } else {
    result.from = of_tensor(exchange.from, exchange.part);
    result.to = of_tensor(exchange.to, exchange.part);
    if (exchange.from.over == Over::partial) meaning.kind = CommMeaning::Kind::parts;
  }
  meaning.results = {result};
  return meaning;
}

}  // namespace convoy::lowering
