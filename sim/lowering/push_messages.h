// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline lowering {

enum class ServerSharding : std::uint8_t { tensor, even };

/// Gradients that a client sends to its parameter servers as one message, whose parameters come back updated.
struct PushMessage {
  static constexpr std::uint32_t every_server = std::numeric_limits<std::uint32_t>::max();
  double bytes = 0;                     ///< from one client, to all its targets together
  OpId ready = 0;                       ///< the operation that completes the last gradient in it
  OpId first_use = 0;                   ///< the forward operation that reads one of its parameters first
  std::uint32_t server = every_server;  ///< index of the only target; every_server: an equal part to each
  std::vector<std::size_t> parameters{};  ///< indices into TrainingGraph::parameters
};

/// Splits the gradients into messages, in the order in which the backward pass completes them.
/// even: buckets of `bucket_bytes` (infinity: one), each split equally over all servers.
/// tensor: whole tensors, each on the server that holds the fewest bytes so far (in the model's order, as
/// TensorFlow's GreedyLoadBalancingStrategy does); with `one_by_one` a message a tensor, else one a server.
std::vector<PushMessage> shard(const TrainingGraph& graph, ServerSharding sharding, std::uint32_t servers,
                               bool one_by_one, double bucket_bytes);

}  // namespace convoy::lowering
