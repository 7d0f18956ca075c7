// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/model.h"
#include "sim/lowering/layer_sharding.h"
#include "strategies/hybrid/layouts.h"

namespace convoy::inline strategies {

/// The sharding of all layers on groups of `devices` devices that have `images` among them; in the order of
/// the model, each from what its inputs' producers make.
/// @throws InputError (at the rule) where there are fewer channels, rows or columns than devices, or a grid
/// has not as many parts as a group devices.
std::vector<LayerSharding> shard_layers(const Model& model, const std::vector<DecidedLayout>& layouts,
                                        const Shards& images);

}  // namespace convoy::strategies
