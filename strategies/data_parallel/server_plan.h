// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/compression.h"
#include "strategies/data_parallel/shards.h"
#include "strategies/replicas.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// When a server answers a worker's push: when all (or all but the backup workers) have pushed; at once; or
/// when the worker is at most `staleness` steps ahead of the slowest.
enum class ServerMode : std::uint8_t { sync, async, ssp };

/// Where a node's gradients are added up before they go to the servers: nowhere; in its host's memory; on the
/// device that owns the tensor; or round a ring of its devices, each of which then has a part of every
/// tensor.
enum class LocalAggregation : std::uint8_t { none, host, owner, ring };

/// When parameters go back: as each is updated; when a server has updated all it holds; or when the next
/// step's forward pass first uses them (TensorFlow), so that a step begins with pulls and ends with the
/// update.
enum class PullMode : std::uint8_t { as_ready, after_all, at_first_use };

struct ServerOptions {
  std::uint32_t servers = 1;
  bool dedicated = true;
  ServerSharding sharding = ServerSharding::tensor;
  bool overlap = true;
  LocalAggregation local_aggregation = LocalAggregation::none;
  PullMode pull = PullMode::as_ready;
  double bucket_bytes = 0;  ///< of sharding `even`
  Shares shares = Shares::equal;
  std::int64_t micro_batches = 1;  ///< of a worker's share
  ServerMode mode = ServerMode::sync;
  std::uint32_t staleness = 0;                ///< mode ssp
  std::uint32_t backup_workers = 0;           ///< mode sync
  Compression compression;                    ///< of what workers push; they get whole parameters back
  SourcePos servers_pos, backup_workers_pos;  ///< of the numbers, for errors

  bool sums_on_devices() const {
    return local_aggregation == LocalAggregation::owner || local_aggregation == LocalAggregation::ring;
  }
  /// Whether workers go on one by one. ssp with staleness 0 is sync.
  bool one_by_one() const {
    return mode == ServerMode::async || (mode == ServerMode::ssp && staleness > 0) || backup_workers > 0;
  }
};

/// The plan of parameter-server training: see read_parameter_server.
/// @throws InputError where the servers do not find a node, the batch does not divide, or all workers are
/// backup workers.
Plan plan_parameter_server(const ServerOptions& options, const StrategyInput& input);

}  // namespace convoy::strategies
