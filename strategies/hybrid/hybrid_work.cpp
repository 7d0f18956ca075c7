// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_work.h"

#include <algorithm>
#include <cmath>

#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

using Over = Sharding::Over;

std::int64_t scaled(std::int64_t size, double share) {
  return std::llround(static_cast<double>(size) * share);
}

double weights_share(const Layer& layer, const LayerSharding& sharding, std::size_t device) {
  const auto all = static_cast<double>(layer.parameter_elements());
  return all > 0 ? parameters_on(layer, sharding, device) / all : 1;
}

Work scaled(const Work& whole, double share) {
  Work work = whole;
  work.flops_per_image *= share;
  work.bytes_per_image *= share;
  return work;
}

/// The kernel's geometry as the device sees it, for its efficiency.
void set_geometry(Work& work, const LayerSharding& sharding, std::size_t device) {
  if (sharding.output.over == Over::channel)
    work.out_channels = scaled(work.out_channels, sharding.output.share(device));
  if (const SpatialGrid* grid = sharding.output.grid.get()) {
    work.out_h = grid->heights[device];
    work.out_w = grid->widths[device];
  }
  if (sharding.inputs.empty() || sharding.inputs.front().needed.over != Over::channel) return;
  const double share = sharding.inputs.front().needed.share(device);
  work.in_channels = scaled(work.in_channels, share);
  if (work.groups > 1) work.groups = scaled(work.groups, share);
}

}  // namespace

ShareOfWork share_of(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                     const HybridSchedule& schedule, const HybridSchedule::Step& step, std::size_t device) {
  const Operation& op = graph.operations[step.op];
  const LayerSharding& sharding = shardings[op.layer];
  const ImagePart& part = schedule.parts[step.part];
  const Sharding& split = step.sharding ? *step.sharding : sharding.output;
  if (split.over == Over::batch) return {op.work, static_cast<double>(split.shards->counts[device])};
  if (step.sharding) return {scaled(op.work, split.share(device)), part.total()};
  const double share = sharding.work_share(device);
  if (share == 0) return {Work{}, part.total()};
  Work work = op.work;
  const double inputs = std::min(input_bytes(graph, op.layer), work.bytes_per_image);
  work.flops_per_image *= share;
  work.bytes_per_image = inputs * inputs_share(graph.model, op.layer, sharding, device) +
                         (work.bytes_per_image - inputs) * sharding.output.share(device);
  work.bytes_fixed *= weights_share(graph.model.layers[op.layer], sharding, device);
  set_geometry(work, sharding, device);
  return {work, part.total()};
}

Work share_of_update(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings, OpId update,
                     std::size_t device) {
  const Operation& op = graph.operations[update];
  const double share = weights_share(graph.model.layers[op.layer], shardings[op.layer], device);
  Work work = op.work;
  work.flops_fixed *= share;
  work.bytes_fixed *= share;
  return work;
}

}  // namespace convoy
