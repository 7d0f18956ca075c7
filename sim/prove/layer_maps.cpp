// SPDX-License-Identifier: MIT
#include "sim/prove/layer_maps.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

namespace convoy::inline prove {
namespace {

constexpr std::array<ImageAxis, 2> image_axes{ImageAxis::height, ImageAxis::width};

IndexSet in_order(const std::set<std::int64_t>& indices) {
  return set_of(std::vector<std::int64_t>(indices.begin(), indices.end()));
}

template <class Visit>
void for_each(const IndexSet& set, Visit visit) {
  for (const IndexRange& range : set)
    for (std::int64_t i = range.begin; i < range.end; ++i) visit(i);
}

/// The channels of so many groups that any of `set` is in, of another number of channels.
IndexSet same_groups(const IndexSet& set, std::int64_t size, std::int64_t groups, std::int64_t other_size) {
  std::set<std::int64_t> found;
  for_each(set, [&](std::int64_t c) { found.insert(c / (size / groups)); });
  IndexSet result;
  const std::int64_t each = other_size / groups;
  for (const std::int64_t g : found)
    if (!result.empty() && result.back().end == g * each)
      result.back().end += each;
    else
      result.push_back({g * each, (g + 1) * each});
  return result;
}

}  // namespace

std::vector<LayerMaps::Run> LayerMaps::runs_of(const std::vector<ChannelSource>& sources) {
  std::vector<Run> runs;
  for (std::size_t c = 0; c < sources.size(); ++c) {
    const ChannelSource& source = sources[c];
    if (!runs.empty() && runs.back().input == source.input &&
        runs.back().source + runs.back().count == source.channel)
      ++runs.back().count;
    else
      runs.push_back({source.input, source.channel, static_cast<std::int64_t>(c), 1});
  }
  return runs;
}

IndexSet LayerMaps::passed_on(const std::vector<Run>& runs, std::size_t k, const IndexSet& sources) {
  std::vector<IndexRange> found;
  for (const Run& run : runs)
    if (run.input == k || run.input == ChannelSource::every_input)
      for (const IndexRange& part : intersection({{run.source, run.source + run.count}}, sources))
        found.push_back({part.begin - run.source + run.output, part.end - run.source + run.output});
  return united(std::move(found));
}

IndexSet LayerMaps::taken_from(const std::vector<Run>& runs, std::size_t k, const IndexSet& outputs) {
  std::vector<IndexRange> found;
  for (const Run& run : runs)
    if (run.input == k || run.input == ChannelSource::every_input)
      for (const IndexRange& part : intersection({{run.output, run.output + run.count}}, outputs))
        found.push_back({part.begin - run.output + run.source, part.end - run.output + run.source});
  return united(std::move(found));
}

std::array<std::int64_t, 3> LayerMaps::sizes(const Shape& shape) {
  std::array<std::int64_t, 3> sizes{1, 1, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) sizes[std::min<std::size_t>(i, 2)] *= shape[i];
  return sizes;
}

LayerMaps::LayerMaps(const TrainingGraph& graph, std::int64_t images) : graph_(graph), images_(images) {
  for (const Layer& layer : graph.model.layers) {
    Maps& maps = maps_.emplace_back();
    const Shape& input = graph.model.shape_of(layer.inputs.front());
    maps.runs = runs_of(channel_sources(graph.model, layer));
    maps.groups = std::max<std::int64_t>(1, groups_of(layer));
    if (const auto* norm = std::get_if<LocalResponseNorm>(&layer.kind)) {
      const std::int64_t channels = layer.output.front();
      for (std::int64_t c = 0; c < channels; ++c)
        maps.channels.of_output.push_back(
            {{std::max<std::int64_t>(0, c - norm->size / 2), std::min(channels, c + (norm->size + 1) / 2)}});
    }
    if (const auto* norm = std::get_if<Normalization>(&layer.kind);
        norm && norm->over == Normalization::Over::group) {
      const std::int64_t channels = layer.output.front(), size = channels / norm->groups;
      for (std::int64_t c = 0; c < channels; ++c)
        maps.channels.of_output.push_back({{c / size * size, (c / size + 1) * size}});
    }
    const auto* linear = std::get_if<Linear>(&layer.kind);
    // Nothing is known of what a custom layer computes: all of its output may be made of all of its input.
    const bool is_custom = std::holds_alternative<Custom>(layer.kind) && layer.inputs.size() == 1;
    maps.mixes = groups_of(layer) == 1 || (linear && (input.size() == 1 || linear->channels)) || is_custom;
    const auto* pool = std::get_if<AdaptiveAvgPool>(&layer.kind);
    maps.pools = pool && pool->size == Size2{1, 1};
    maps.has_rows = is_spatial(layer) && input.size() == 3;
    if (!maps.has_rows) continue;
    for (const LayerIndex of : layer.inputs) {
      const std::array<std::int64_t, 3> size = sizes(graph.model.shape_of(of));
      std::array<Windows, 2>& windows = maps.windows.emplace_back();
      for (std::size_t axis = 0; axis < 2; ++axis)
        for (std::int64_t out = 0; out < layer.output[axis + 1]; ++out) {
          const bool one_for_all =
              size[axis + 1] == 1 && layer.output[axis + 1] > 1 && !reads_windows(layer, image_axes[axis]);
          windows[axis].of_output.push_back(
              one_for_all ? all_of(1) : set_of(rows_read(layer, image_axes[axis], size[axis + 1], out)));
        }
    }
  }
}

std::int64_t LayerMaps::groups_of(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<Conv3d>(&layer.kind)) return conv->groups;
  if (const auto* conv = std::get_if<ConvTranspose3d>(&layer.kind)) return conv->groups;
  return 0;
}

Box LayerMaps::box_of(const Shape& shape) const {
  const auto [channels, rows, columns] = sizes(shape);
  return {{all_of(images_), all_of(channels), all_of(rows), all_of(columns), all_of(1)}};
}

Box LayerMaps::work(std::size_t layer) const {
  Box box = tensor(layer);
  const Maps& maps = maps_[layer];
  const auto [channels, rows, columns] =
      sizes(graph_.model.shape_of(graph_.model.layers[layer].inputs.front()));
  if (maps.mixes) box[Box::inputs] = all_of(channels);
  if (maps.pools) box[Box::inputs] = all_of(rows * columns);
  return box;
}

IndexSet LayerMaps::along(const Windows& windows, const IndexSet& outputs) {
  std::set<std::int64_t> found;
  for_each(outputs, [&](std::int64_t out) {
    for_each(windows.of_output[static_cast<std::size_t>(out)], [&](std::int64_t in) { found.insert(in); });
  });
  return in_order(found);
}

IndexSet LayerMaps::back_along(const Windows& windows, const IndexSet& inputs) {
  std::vector<std::int64_t> found;
  for (std::size_t out = 0; out < windows.of_output.size(); ++out)
    if (!intersection(windows.of_output[out], inputs).empty())
      found.push_back(static_cast<std::int64_t>(out));
  return set_of(found);
}

Box LayerMaps::read(std::size_t layer, std::size_t k, const Box& work) const {
  const Maps& maps = maps_[layer];
  const Model& model = graph_.model;
  const LayerIndex input = model.layers[layer].inputs[k];
  Box box = box_of(model.shape_of(input));
  const std::int64_t channels = count(box[Box::channels]), columns = count(box[Box::columns]);
  box[Box::images] = work[Box::images];
  if (maps.mixes) {
    box[Box::channels] = work[Box::inputs];
  } else if (maps.groups > 1) {
    box[Box::channels] =
        same_groups(work[Box::channels], sizes(model.layers[layer].output)[0], maps.groups, channels);
  } else if (!maps.channels.of_output.empty()) {
    box[Box::channels] = along(maps.channels, work[Box::channels]);
  } else if (!maps.runs.empty()) {
    box[Box::channels] = taken_from(maps.runs, k, work[Box::channels]);
  }
  if (maps.has_rows) {
    box[Box::rows] = along(maps.windows[k][0], work[Box::rows]);
    box[Box::columns] = along(maps.windows[k][1], work[Box::columns]);
  } else if (maps.pools) {
    std::set<std::int64_t> rows, cols;
    for_each(work[Box::inputs],
             [&](std::int64_t at) { rows.insert(at / columns), cols.insert(at % columns); });
    box[Box::rows] = in_order(rows);
    box[Box::columns] = in_order(cols);
  }
  return box;
}

Box LayerMaps::readers(std::size_t layer, std::size_t k, const Box& elements) const {
  const Maps& maps = maps_[layer];
  const Model& model = graph_.model;
  Box box = work(layer);
  const Box input = box_of(model.shape_of(model.layers[layer].inputs[k]));
  box[Box::images] = elements[Box::images];
  if (maps.mixes) {
    box[Box::inputs] = elements[Box::channels];
  } else if (maps.groups > 1) {
    box[Box::channels] = same_groups(elements[Box::channels], count(input[Box::channels]), maps.groups,
                                     count(box[Box::channels]));
  } else if (!maps.channels.of_output.empty()) {
    box[Box::channels] = back_along(maps.channels, elements[Box::channels]);
  } else if (!maps.runs.empty()) {
    box[Box::channels] = passed_on(maps.runs, k, elements[Box::channels]);
  }
  if (maps.has_rows) {
    box[Box::rows] = back_along(maps.windows[k][0], elements[Box::rows]);
    box[Box::columns] = back_along(maps.windows[k][1], elements[Box::columns]);
  } else if (maps.pools) {
    std::set<std::int64_t> positions;
    const std::int64_t columns = count(input[Box::columns]);
    for_each(elements[Box::rows], [&](std::int64_t r) {
      for_each(elements[Box::columns], [&](std::int64_t c) { positions.insert(r * columns + c); });
    });
    box[Box::inputs] = in_order(positions);
  }
  return box;
}

Box LayerMaps::handed_on(std::size_t layer, std::size_t k, const Box& output) const {
  const Box input = box_of(graph_.model.shape_of(graph_.model.layers[layer].inputs[k]));
  // All that is read by nothing outside of `output`, and by something.
  Box outside = work(layer), box = read(layer, k, output);
  for (const Box::Axis axis : {Box::channels, Box::rows, Box::columns}) {
    Box rest = outside;
    rest[axis] = difference(outside[axis], output[axis]);
    if (rest[axis].empty()) continue;
    box[axis] = difference(box[axis], read(layer, k, rest)[axis]);
  }
  return intersection(box, input);
}

}  // namespace convoy::prove
