// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/halo.h"
#include "sim/lowering/sharding.h"

namespace convoy::inline lowering {

/// What a layer needs of one of its inputs, and what its backward pass gives back.
struct InputSharding {
  Sharding needed, gradient;
  std::optional<Halo> halo;  ///< beside its own rows; in backward as many partial gradients go back
};

/// How a layer computes on the devices of a group: what a strategy annotates it with.
struct LayerSharding {
  std::string layout;  ///< its name in reports: "filter", "height 2 x width 4"
  std::vector<InputSharding> inputs;
  Sharding output;           ///< as it is made
  Sharding output_gradient;  ///< as backward needs it
  bool sums_inputs = false;  ///< work and weights go with the share of the inputs; outputs are partial sums
  bool splits_weights = false;  ///< each device has a share of the parameters; else all have all

  /// Of the layer's arithmetic.
  double work_share(std::size_t device) const {
    return sums_inputs ? inputs.front().needed.share(device) : output.share(device);
  }
  /// Whether devices compute different terms of the gradients of parameters that all of them have.
  bool sums_gradients() const { return !splits_weights && output.over != Sharding::Over::replicate; }
};

/// Everything done alike by every device.
LayerSharding replicated_layer(const Layer& layer);
std::vector<LayerSharding> replicated_layers(const Model& model);

/// Parameters of one tensor of a layer that a device has: a share of it, or all.
double parameters_on(const Layer& layer, const LayerSharding& sharding, const ParameterTensor& tensor,
                     std::size_t device);
/// Of all the layer's tensors.
double parameters_on(const Layer& layer, const LayerSharding& sharding, std::size_t device);

/// The same as a share of the layer's parameters; 1 where it has none.
double parameters_share(const Layer& layer, const LayerSharding& sharding, std::size_t device);

/// Share of a layer's inputs, by bytes, that a device reads, halos included.
double inputs_share(const Model& model, std::size_t layer, const LayerSharding& sharding, std::size_t device);

/// A device's part of a kernel of a layer that is not split by images: its channels' or positions' share of
/// the FLOPs and of the bytes that it reads and writes (halos and inputs that everyone reads count on each
/// device), with the geometry that the device sees.
/// @param input_bytes of the layer's whole inputs, an image (TensorBytes)
Work share_of_kernel(const Model& model, const Operation& op, double input_bytes,
                     const LayerSharding& sharding, std::size_t device);

}  // namespace convoy::lowering
