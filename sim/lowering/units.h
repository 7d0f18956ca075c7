// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline lowering {

/// The pieces into which a network can be cut: its layers that run a kernel, in the model's (topological)
/// order. A view (flatten, slice) belongs to the unit of the layer whose output it shows, so that only the
/// needed part of the output is sent. Any cut between two units is valid, whichever branches it crosses,
/// except between layers that use the same parameters.
struct Units {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// An output that another unit reads.
  struct Tensor {
    std::uint32_t layer;                 ///< index into Model::layers
    std::uint32_t producer;              ///< unit
    std::vector<std::uint32_t> readers;  ///< units, ascending, each once; all after the producer
    double bytes_per_image;
    bool has_gradient;  ///< whether its readers send a gradient of the same size back
  };

  std::vector<std::uint32_t> layers;   ///< by unit
  std::vector<std::uint32_t> unit_of;  ///< by layer; none for views of the image
  std::vector<Tensor> tensors;         ///< by layer
  std::vector<double> parameters;      ///< elements that are trained, by unit
  std::vector<double> frozen;          ///< elements that are not, by unit
  /// By unit: whether a stage may begin with it. Layers that use the same parameters are in one stage,
  /// together with all layers between them.
  std::vector<bool> begins;

  std::size_t size() const { return layers.size(); }
};

Units find_units(const TrainingGraph& graph);

/// The stage of each layer. Views of the image, which run nothing, are in the first stage.
/// @param first_units of each stage, ascending, the first 0
std::vector<std::uint32_t> stages_of_layers(const Units& units,
                                            const std::vector<std::uint32_t>& first_units);

}  // namespace convoy::lowering
