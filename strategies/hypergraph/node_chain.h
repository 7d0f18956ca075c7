// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "strategies/cost_table.h"

namespace convoy::inline search {

/// What no step stays below whose layers' output channels are dealt out to `parts` devices (`kind:
/// hypergraph`, whatever the method): a device that has at least the mean number of channels of a dense layer
/// (convolution of one group, or linear) can begin only when all parts of the layers before it are done,
/// since its channels are made of all of theirs, and as much holds backward for the gradients of its inputs.
/// So the longest path through the operations, on which a dense layer counts with the least time that any
/// number of channels from the mean up to all takes, and every other operation with none.
/// Of the kinds of device the quickest counts.
/// @param images of a micro-batch
double node_chain_s(const CostTable& table, double images, std::int64_t parts);

}  // namespace convoy::search
