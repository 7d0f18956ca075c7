// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/lowering/placed_plan.h"
#include "strategies/hypergraph/node_hypergraph.h"

namespace convoy::inline strategies {

/// Slices the training graph: each part runs its nodes of every layer as one kernel and keeps their weights;
/// it gets the outputs it reads of others, all layers' in one message each, and sends back partial gradients,
/// which the owner adds up; where several of its layers make a gradient of the same nodes, it sends their sum.
/// Forward along the layers, backward against them.
/// Memory: the graph's buffers by the share of nodes (gradients of inputs: of the inputs read), copies of
/// others' outputs from their first use until the last layer that needs them for backward, received partial
/// gradients while they are added.
/// @param images of a micro-batch
/// @param meaning whether to say what the operations and messages mean
PlacedWork slice_graph(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts,
                       std::uint32_t count, double images, std::uint32_t micro_batches, bool meaning = false);

}  // namespace convoy::strategies
