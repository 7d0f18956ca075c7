// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/hypergraph/node_hypergraph.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// What the parts of a partition send each other for a layer's output, bytes of one image.
struct NodeMessage {
  std::uint32_t owner, reader;  ///< parts
  double bytes;                 ///< of the owner's blocks that the reader needs
};

/// A layer's output forward, or its gradient backward.
struct NodeExchange {
  std::uint32_t layer;
  bool forward;
  bool operator==(const NodeExchange&) const = default;
};

/// What a part does at one layer, for one micro-batch.
struct NodeStep {
  std::uint32_t layer;
  bool forward;
  std::vector<PlanOp> ops;
  std::vector<NodeExchange> receives;  ///< before it
  std::vector<NodeExchange> sends;     ///< after it
};

/// The steps of every part for one micro-batch, in order: forward along the layers, backward against them.
struct NodePrograms {
  std::vector<std::vector<NodeMessage>> messages;  ///< by node layer, ordered by owner and reader
  std::vector<std::vector<NodeStep>> steps;        ///< by part
  std::vector<std::vector<PlanOp>> updates;        ///< by part
  std::vector<double> parameter_share;             ///< by part: of all parameters
};

/// Slices the training graph: each part runs its nodes of every layer as one kernel and keeps their weights;
/// it gets the outputs it reads of others, and sends back partial gradients, which the owner adds up.
/// Memory: the graph's buffers by the share of nodes (gradients of inputs: of the inputs read), copies of
/// others' outputs from their first use until the last layer that needs them for backward, received partial
/// gradients while they are added.
/// @param images of a micro-batch
NodePrograms slice_graph(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts,
                         std::uint32_t count, double images);

}  // namespace convoy::strategies
