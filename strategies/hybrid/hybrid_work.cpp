// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_work.h"

#include <algorithm>
#include <cmath>

#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

using Over = Spread::Over;

std::int64_t scaled(std::int64_t size, double share) {
  return std::llround(static_cast<double>(size) * share);
}

double weights_share(const Layer& layer, const LayerSpread& spread, std::size_t device) {
  const auto all = static_cast<double>(layer.parameter_elements());
  return all > 0 ? parameters_on(layer, spread, device) / all : 1;
}

Work scaled(const Work& whole, double share) {
  Work work = whole;
  work.flops_per_image *= share;
  work.bytes_per_image *= share;
  return work;
}

/// The kernel's geometry as the device sees it, for its efficiency.
void set_geometry(Work& work, const LayerSpread& spread, std::size_t device) {
  if (spread.output.over == Over::channels)
    work.out_channels = scaled(work.out_channels, spread.output.share(device));
  if (spread.output.over == Over::rows) work.out_h = spread.output.cut->counts[device];
  if (spread.output.over == Over::columns) work.out_w = spread.output.cut->counts[device];
  if (spread.inputs.empty() || spread.inputs.front().needed.over != Over::channels) return;
  const double share = spread.inputs.front().needed.share(device);
  work.in_channels = scaled(work.in_channels, share);
  if (work.groups > 1) work.groups = scaled(work.groups, share);
}

}  // namespace

ShareOfWork share_of(const TrainingGraph& graph, const std::vector<LayerSpread>& spreads,
                     const HybridSchedule& schedule, const HybridSchedule::Step& step, std::size_t device) {
  const Operation& op = graph.operations[step.op];
  const LayerSpread& spread = spreads[op.layer];
  const ImagePart& part = schedule.parts[step.part];
  const Spread& split = step.spread ? *step.spread : spread.output;
  if (split.over == Over::images) return {op.work, static_cast<double>(split.cut->counts[device])};
  if (step.spread) return {scaled(op.work, split.share(device)), part.total()};
  const double share = spread.work_share(device);
  if (share == 0) return {Work{}, part.total()};
  Work work = op.work;
  const double inputs = std::min(input_bytes(graph, op.layer), work.bytes_per_image);
  work.flops_per_image *= share;
  work.bytes_per_image = inputs * inputs_share(graph.model, op.layer, spread, device) +
                         (work.bytes_per_image - inputs) * spread.output.share(device);
  work.bytes_fixed *= weights_share(graph.model.layers[op.layer], spread, device);
  set_geometry(work, spread, device);
  return {work, part.total()};
}

Work share_of_update(const TrainingGraph& graph, const std::vector<LayerSpread>& spreads, OpId update,
                     std::size_t device) {
  const Operation& op = graph.operations[update];
  const double share = weights_share(graph.model.layers[op.layer], spreads[op.layer], device);
  Work work = op.work;
  work.flops_fixed *= share;
  work.bytes_fixed *= share;
  return work;
}

}  // namespace convoy
