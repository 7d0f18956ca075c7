// SPDX-License-Identifier: MIT
#pragma once

#include "sim/lowering/placed_plan.h"
#include "strategies/hypergraph/node_shares.h"

namespace convoy::inline strategies {

/// Slices the training graph: each part runs its nodes of every layer as one kernel and keeps their weights;
/// it gets the outputs it reads of others, all layers' in one message each, and sends back partial gradients,
/// which the owner adds up; where several of its layers make a gradient of the same nodes, it sends their sum.
/// Forward along the layers, backward against them.
/// @param meaning whether to say what the operations and messages mean
PlacedWork slice_graph(const NodeShares& shares, std::uint32_t micro_batches, bool meaning = false);

}  // namespace convoy::strategies
