// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "strategies/replicas.h"
#include "strategies/shards.h"
#include "strategies/strategy.h"

namespace convoy {

struct ServerOptions {
  std::uint32_t servers = 1;
  bool dedicated = true;
  Sharding sharding = Sharding::tensor;
  bool overlap = true;
  bool local_aggregation = false;
  bool pull_after_all = false;  ///< a server sends nothing back before it has updated all it holds
  double bucket_bytes = 0;      ///< of sharding `even`
  Shares shares = Shares::equal;
  SourcePos servers_pos;  ///< of the number of servers, for errors
};

/// The plan of synchronous parameter-server training: see read_parameter_server.
/// @throws InputError where the servers do not find a node, or the batch does not divide.
Plan plan_parameter_server(const ServerOptions& options, const StrategyInput& input);

}  // namespace convoy
