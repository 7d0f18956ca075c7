// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "strategies/hybrid/layouts.h"
#include "strategies/hybrid/sharding.h"
#include "strategies/hybrid/windows.h"

namespace convoy {

/// What a layer needs of one of its inputs, and what its backward pass gives back.
struct InputSharding {
  Sharding needed, gradient;
  std::optional<Halo> halo;  ///< beside its own rows; in backward as many partial gradients go back
};

/// How a layer computes on the devices of a group.
struct LayerSharding {
  LayerLayout layout;
  std::vector<InputSharding> inputs;
  Sharding output;           ///< as it is made
  Sharding output_gradient;  ///< as backward needs it
  bool sums_inputs = false;  ///< work and weights go with the share of the inputs; outputs are partial sums
  bool splits_weights = false;  ///< each device has a share of the parameters; else all have all

  /// Of the layer's arithmetic.
  double work_share(std::size_t device) const {
    return sums_inputs ? inputs.front().needed.share(device) : output.share(device);
  }
};

/// The layer's layout in words: "filter", "height 2 x width 4".
std::string layout_text(const LayerSharding& sharding);

/// The sharding of all layers on groups of `devices` devices that have `images` among them; in the order of
/// the model, each from what its inputs' producers make.
/// @throws InputError (at the rule) where there are fewer channels, rows or columns than devices, or a grid
/// has not as many parts as a group devices.
std::vector<LayerSharding> shard_layers(const Model& model, const std::vector<DecidedLayout>& layouts,
                                        const Shards& images);

/// Parameters of one tensor of a layer that a device has: a share of it, or all.
double parameters_on(const Layer& layer, const LayerSharding& sharding, const ParameterTensor& tensor,
                     std::size_t device);
/// Of all the layer's tensors.
double parameters_on(const Layer& layer, const LayerSharding& sharding, std::size_t device);

/// Share of a layer's inputs, by bytes, that a device reads, halos included.
double inputs_share(const Model& model, std::size_t layer, const LayerSharding& sharding, std::size_t device);

}  // namespace convoy
