// SPDX-License-Identifier: MIT
#include "sim/lowering/layer_sharding.h"

#include <algorithm>
#include <cmath>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

using Over = Sharding::Over;

std::int64_t scaled(std::int64_t size, double share) {
  return std::llround(static_cast<double>(size) * share);
}

/// The kernel's geometry as the device sees it, for its efficiency.
void set_geometry(Work& work, const Layer& layer, const LayerSharding& sharding, std::size_t device) {
  if (std::holds_alternative<Attention>(layer.kind)) {  // fewer heads of the same size
    if (sharding.output.over == Over::channel) work.out_h = scaled(work.out_h, sharding.output.share(device));
    return;
  }
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

LayerSharding replicated_layer(const Layer& layer) {
  LayerSharding sharding{"replicated", {}, {}, {}};
  sharding.inputs.resize(layer.inputs.size());
  return sharding;
}

std::vector<LayerSharding> replicated_layers(const Model& model) {
  std::vector<LayerSharding> shardings;
  for (const Layer& layer : model.layers) shardings.push_back(replicated_layer(layer));
  return shardings;
}

double parameters_on(const Layer& layer, const LayerSharding& sharding, const ParameterTensor& tensor,
                     std::size_t device) {
  const auto all = static_cast<double>(tensor.elements);
  if (!sharding.splits_weights) return all;
  // Where outputs are summed over the devices, what is added to the sum is everyone's.
  if (sharding.sums_inputs && &tensor != layer.parameters.data()) return all;
  return all * sharding.work_share(device);
}

double parameters_on(const Layer& layer, const LayerSharding& sharding, std::size_t device) {
  double sum = 0;
  for (const ParameterTensor& tensor : layer.parameters)
    sum += parameters_on(layer, sharding, tensor, device);
  return sum;
}

double parameters_share(const Layer& layer, const LayerSharding& sharding, std::size_t device) {
  const auto all = static_cast<double>(layer.parameter_elements());
  return all > 0 ? parameters_on(layer, sharding, device) / all : 1;
}

double inputs_share(const Model& model, std::size_t layer, const LayerSharding& sharding,
                    std::size_t device) {
  double all = 0, own = 0;
  for (std::size_t k = 0; k < sharding.inputs.size(); ++k) {
    const auto size = static_cast<double>(elements(model.shape_of(model.layers[layer].inputs[k])));
    const InputSharding& input = sharding.inputs[k];
    double share = input.needed.share(device);
    if (input.halo)
      share +=
          static_cast<double>(input.halo->counts[device]) / static_cast<double>(input.needed.shards->size);
    all += size;
    own += size * share;
  }
  return all > 0 ? own / all : 1;
}

Work share_of_kernel(const Model& model, const Operation& op, double input_bytes,
                     const LayerSharding& sharding, std::size_t device) {
  if (sharding.output.over == Over::replicate && !sharding.sums_inputs) return op.work;
  const double share = sharding.work_share(device);
  if (share == 0) return Work{};
  Work work = op.work;
  const double inputs = std::min(input_bytes, work.bytes_per_image);
  work.flops_per_image *= share;
  work.seconds_per_image *= share;
  work.aside_bytes_per_image *= share;
  work.bytes_per_image = inputs * inputs_share(model, op.layer, sharding, device) +
                         (work.bytes_per_image - inputs) * sharding.output.share(device);
  const double of_parameters = parameters_share(model.layers[op.layer], sharding, device);
  for (double* bytes : {&work.bytes_fixed, &work.aside_bytes_fixed, &work.reordered_bytes})
    *bytes *= of_parameters;
  set_geometry(work, model.layers[op.layer], sharding, device);
  return work;
}

}  // namespace convoy::lowering
