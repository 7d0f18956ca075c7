// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/compression.h"
#include "strategies/data_parallel/shards.h"
#include "strategies/replicas.h"
#include "strategies/strategy.h"

namespace convoy {

/// When a server answers a worker's push: when all (or all but the backup workers) have pushed; at once; or
/// when the worker is at most `staleness` steps ahead of the slowest.
enum class ServerMode : std::uint8_t { sync, async, ssp };
inline const std::vector<std::string> server_mode_names{"sync", "async", "ssp"};

struct ServerOptions {
  std::uint32_t servers = 1;
  bool dedicated = true;
  Sharding sharding = Sharding::tensor;
  bool overlap = true;
  bool local_aggregation = false;
  bool pull_after_all = false;  ///< a server sends nothing back before it has updated all it holds
  double bucket_bytes = 0;      ///< of sharding `even`
  Shares shares = Shares::equal;
  ServerMode mode = ServerMode::sync;
  std::uint32_t staleness = 0;                ///< mode ssp
  std::uint32_t backup_workers = 0;           ///< mode sync
  Compression compression;                    ///< of what workers push; they get whole parameters back
  SourcePos servers_pos, backup_workers_pos;  ///< of the numbers, for errors

  /// Whether workers go on one by one. ssp with staleness 0 is sync.
  bool one_by_one() const {
    return mode == ServerMode::async || (mode == ServerMode::ssp && staleness > 0) || backup_workers > 0;
  }
};

/// The plan of parameter-server training: see read_parameter_server.
/// @throws InputError where the servers do not find a node, the batch does not divide, or all workers are
/// backup workers.
Plan plan_parameter_server(const ServerOptions& options, const StrategyInput& input);

}  // namespace convoy
