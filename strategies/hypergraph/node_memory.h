// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/lowering/liveness.h"
#include "strategies/hypergraph/node_shares.h"

namespace convoy::inline strategies {

/// A layer's output forward, or its gradient backward.
struct NodeExchange {
  std::uint32_t layer;
  bool forward;
  auto operator<=>(const NodeExchange&) const = default;
};

/// What a part does at one layer.
struct NodeStep {
  std::uint32_t layer;
  bool forward;
  std::vector<PlanOp> ops;
  std::vector<NodeExchange> receives;                ///< before it
  std::vector<NodeExchange> sends;                   ///< after it
  std::map<std::uint32_t, std::size_t> sent_sums{};  ///< by layer: the last of ops that adds up what is sent
};

/// What part p holds of a micro-batch: the graph's buffers by the share of nodes; copies of others' outputs from their
/// first use until the last layer that needs them for backward; gradients of outputs, of its own nodes until the last
/// operation that reads them, of others' until they are sent back, and what has come until it is added up, or, where
/// the part makes no gradient of these nodes itself, the first of it in their place. Positions count the steps'
/// operations.
std::vector<LiveTensor<MemoryDelta>> tensors_of_part(const NodeShares& shares, std::uint32_t p,
                                                     const std::vector<NodeStep>& steps);

}  // namespace convoy::strategies
