// SPDX-License-Identifier: MIT
#include "strategies/split_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace convoy::inline search {
namespace {

/// The smallest share of `size` parts that one of `devices` gets; all where there are too few to split.
double smallest_share(std::int64_t size, std::int64_t devices) {
  return size < devices ? 1 : static_cast<double>(size / devices) / static_cast<double>(size);
}

/// Over all axes of what the layer reads and writes, and over its rows and columns at once.
double smallest_share(const Model& model, const Layer& layer, std::int64_t images, std::int64_t devices,
                      const std::optional<Size2>& grid) {
  double share = smallest_share(images, devices);
  const auto take_in = [&](const Shape& shape) {
    for (const std::int64_t size : shape) share = std::min(share, smallest_share(size, devices));
    if (grid && shape.size() == 3)
      share = std::min(share, smallest_share(shape[1], grid->h) * smallest_share(shape[2], grid->w));
  };
  take_in(layer.output);
  for (const LayerIndex input : layer.inputs) take_in(model.shape_of(input));
  return share;
}

/// The parts of an axis of the kernel that a device may have: fewest and most.
std::array<std::int64_t, 2> parts_of(std::int64_t size, std::int64_t devices) {
  return {std::max<std::int64_t>(1, size / devices), (size + devices - 1) / devices};
}

}  // namespace

double least_split_time_s(const TrainingGraph& graph, const Operation& operation, double images,
                          std::int64_t devices, const std::optional<Size2>& grid, const CostModel& cost,
                          const DeviceType& type) {
  const auto whole_images = static_cast<std::int64_t>(std::floor(images));
  double least_s = cost.time_s(operation.work,
                               static_cast<double>(std::max<std::int64_t>(1, whole_images / devices)), type);
  const double share =
      smallest_share(graph.model, graph.model.layers[operation.layer], whole_images, devices, grid);
  Work part = operation.work;
  for (double Work::*amount : {&Work::flops_per_image, &Work::bytes_per_image, &Work::flops_fixed,
                               &Work::bytes_fixed, &Work::aside_bytes_per_image, &Work::aside_bytes_fixed,
                               &Work::reordered_bytes, &Work::seconds_per_image})
    part.*amount *= share;
  const auto consider = [&](const Work& work) {
    least_s = std::min(least_s, cost.time_s(work, images, type));
  };
  consider(part);
  for (std::int64_t Work::*axis : {&Work::out_channels, &Work::in_channels, &Work::out_h, &Work::out_w}) {
    if (part.*axis < devices) continue;
    for (const std::int64_t size : parts_of(part.*axis, devices)) {
      Work split = part;
      split.*axis = size;
      consider(split);
      if (axis != &Work::out_channels || part.groups <= 1) continue;
      for (const std::int64_t groups : parts_of(part.groups, devices)) {  // split between groups
        split.groups = groups;
        for (const std::int64_t read : parts_of(part.in_channels, devices)) {
          split.in_channels = read;
          consider(split);
        }
      }
    }
  }
  if (grid && part.out_h >= grid->h && part.out_w >= grid->w)
    for (const std::int64_t rows : parts_of(part.out_h, grid->h))
      for (const std::int64_t columns : parts_of(part.out_w, grid->w)) {
        Work split = part;
        split.out_h = rows;
        split.out_w = columns;
        consider(split);
      }
  return least_s;
}

}  // namespace convoy::search
