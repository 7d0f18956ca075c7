// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "models/model.h"
#include "sim/lowering/layer_sharding.h"

namespace convoy::inline strategies {

/// A layer that is to be annotated.
struct LayerInGroup {
  const Model& model;  ///< whose layer it is
  const Layer& layer;  ///< the layer
  /// By input: how the layer that makes it leaves it on the devices; nullptr: the image, which is wherever it is
  /// read.
  std::vector<const Sharding*> inputs;
  std::size_t devices;  ///< of the group
};

/// A layout of layers beside `filter`, `height` and the like.
struct LayoutEntry {
  std::string_view name;          ///< what `conv`, `fc` and `groups` of a hybrid call it
  bool (*fits)(const Layer& of);  ///< whether a layer can have it
  /// What each device needs of the layer's inputs, computes, and leaves. The name need not be set.
  /// @throws InputError where there are too many devices for the layer
  LayerSharding (*annotate)(const LayerInGroup& of);
};

/// Adds a layout, for programs that are built with convoy as a library (docs/extending.md, "A layout"). All that
/// hybrids can do, they can do with it: pipelines of them, replicas, micro-batches, ZeRO, recomputation.
/// @pre nothing has looked at the keys of strategies yet: called at the beginning of main, before add_strategy()
/// @throws std::logic_error where that is not so, or where there is a layout of that name
void add_layout(LayoutEntry entry);

}  // namespace convoy::strategies
