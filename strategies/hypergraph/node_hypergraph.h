// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/training_graph.h"
#include "strategies/partition/hypergraph_partition.h"

namespace convoy::inline strategies {

/// Channels begin ... end - 1 of a layer's output: nodes that read the same and are read by the same, so that
/// they are one vertex.
struct NodeBlock {
  std::int64_t begin, end;
  std::uint32_t vertex;
  std::vector<std::uint32_t> readers;  ///< vertices that read it, without its own, sorted
};

/// A layer of the model, or the loss of one of its outputs, as blocks of nodes.
struct NodeLayer {
  struct Input {
    std::uint32_t layer;  ///< index into NodeHypergraph::layers
    /// By block: first and one past the last block of the input that it reads.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> reads;
  };
  std::vector<NodeBlock> blocks;
  std::vector<Input> inputs;  ///< without the image
  bool reads_image = false;
  bool gradient = false;  ///< a gradient comes back to its output
  std::int64_t channels = 1;
  double bytes = 0;  ///< of its output, one image
  std::uint32_t model_layer = 0;
  std::optional<OpId> forward;
  std::vector<OpId> backward;  ///< sums of gradients, data gradient, weight gradient: in this order
  std::optional<OpId> update;

  double share(const NodeBlock& block) const {
    return static_cast<double>(block.end - block.begin) / static_cast<double>(channels);
  }
};

/// A training graph as Eserol's hypergraph. Vertices are nodes of layers (output channels of convolutions,
/// neurons of linear layers) in blocks; layers that work channel by channel (activations, batch
/// normalization, pooling, ...) belong to the vertex they follow. A vertex weighs the FLOPs of an image,
/// forward and backward. A net is a block's output with all that read it; it costs the bytes of an image
/// forward and, where there is a gradient, as many back. The image is no vertex: every part has it.
/// Source: Eserol's thesis partitions by layer nodes with PaToH (CS590 seminar abstract, Bilkent, 5 March
/// 2018); weights and costs are our reading, after PaToH's connectivity-1 metric.
struct NodeHypergraph {
  std::vector<NodeLayer> layers;  ///< the model's, then the losses; inputs come before their readers
  LayeredHypergraph graph;
};

/// How finely layers are cut.
struct Granularity {
  enum class Kind : std::uint8_t {
    automatic,  ///< blocks of at most a quarter of the tolerance of a part, and at least one a part
    channel,    ///< a vertex a node
    layer,      ///< a vertex a layer
    channels,   ///< `size` nodes a vertex
  };
  Kind kind = Kind::automatic;
  std::int64_t size = 1;
};

/// @param parts, epsilon what `automatic` cuts for
/// @throws std::length_error where the hypergraph would have more than 20 million pins.
NodeHypergraph make_hypergraph(const TrainingGraph& graph, const Granularity& granularity,
                               std::uint32_t parts, double epsilon);

}  // namespace convoy::strategies
