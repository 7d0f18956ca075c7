// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "models/layer.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {

/// A network with every shape known.
struct Model {
  std::string name;
  Shape input;
  std::vector<Layer> layers;  ///< in a topological order: the order written, save where `inputs` forbid it
  bool cross_entropy_loss = false;    ///< softmax cross entropy on every output (`loss: cross_entropy`)
  std::vector<std::string> warnings;  ///< what was read with less than its full meaning, a line each

  const Shape& shape_of(LayerIndex layer) const {
    return layer == image_input ? input : layers[static_cast<std::size_t>(layer)].output;
  }
  /// The layer whose parameters a layer uses: itself, or another one (Layer::weights_of).
  template <std::integral Index>
  Index parameter_owner(Index layer) const {
    const Layer& of = layers[static_cast<std::size_t>(layer)];
    return of.shares() ? static_cast<Index>(of.weights_of) : layer;
  }
};

/// Reads the `model:` of an experiment: the name of a zoo model, {name: resnet50, input: [...], classes: 10}
/// with the zoo file's parameters, {file: model.yaml}, {onnx: file} or {profile: times.csv} (beside the file
/// the mapping stands in), or a model written out ({name, input, layers}; docs/models.md).
/// @throws InputError at the place that is wrong.
Model read_model(const YamlNode& node);

/// Names of the zoo's models, sorted; families are given by their pattern ("wrn_DEPTH_WIDTH").
std::vector<std::string> zoo_names();

}  // namespace convoy::models
