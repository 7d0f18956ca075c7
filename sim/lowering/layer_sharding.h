// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/halo.h"
#include "sim/lowering/sharding.h"

namespace convoy::inline lowering {

/// The sharding in which a layer needs one of its inputs, and that of the gradient that its backward pass
/// makes.
struct InputSharding {
  Sharding needed, gradient;
  std::optional<Halo> halo;  ///< beside its own rows; backward sends as many partial gradients back
};

/// How a layer is computed by the devices of a group: a strategy's annotation of the layer.
struct LayerSharding {
  std::string layout;  ///< its name in reports: "filter", "height 2 x width 4"
  std::vector<InputSharding> inputs;
  Sharding output;           ///< as it is made
  Sharding output_gradient;  ///< as backward needs it
  bool sums_inputs = false;  ///< work and weights are split as the inputs are; outputs are partial sums
  bool splits_weights = false;  ///< each device has a share of the parameters; otherwise each has all of them

  /// Of the layer's arithmetic.
  double work_share(std::size_t device) const {
    return sums_inputs ? inputs.front().needed.share(device) : output.share(device);
  }
  /// Whether devices compute different terms of the gradients of parameters that all of them have.
  bool sums_gradients() const { return !splits_weights && output.over != Sharding::Over::replicate; }
};

/// Every device computes the whole layer.
LayerSharding replicated_layer(const Layer& layer);
std::vector<LayerSharding> replicated_layers(const Model& model);

/// The number of parameters that a device has of one tensor of a layer: a share, or all.
double parameters_on(const Layer& layer, const LayerSharding& sharding, const ParameterTensor& tensor,
                     std::size_t device);
/// The same for all tensors of the layer.
double parameters_on(const Layer& layer, const LayerSharding& sharding, std::size_t device);

/// The same as a share of the layer's parameters; 1 where it has none.
double parameters_share(const Layer& layer, const LayerSharding& sharding, std::size_t device);

/// Share of a layer's inputs, by bytes, that a device reads, halos included.
double inputs_share(const Model& model, std::size_t layer, const LayerSharding& sharding, std::size_t device);

/// A device's part of a kernel of a layer that is not split by images: the share of the FLOPs, and of the
/// bytes that are read and written, of its channels or positions, with the geometry that the device sees.
/// Halos, and inputs that all devices read, count on each device.
/// @param input_bytes of the layer's whole inputs, for one image (TensorBytes)
Work share_of_kernel(const Model& model, const Operation& op, double input_bytes,
                     const LayerSharding& sharding, std::size_t device);

}  // namespace convoy::lowering
