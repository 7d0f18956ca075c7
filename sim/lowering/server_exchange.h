// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/lowering/compression.h"
#include "sim/lowering/push_messages.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// When a server answers a worker's push: when all (or all but the backup workers) have pushed; at once; or
/// when the worker is at most `staleness` steps ahead of the slowest.
enum class ServerMode : std::uint8_t { sync, async, ssp };

/// Where a node's gradients are added up before they go to the servers: nowhere; in its host's memory; on the
/// device that owns the tensor; or round a ring of its devices, each of which then has a part of every
/// tensor.
///
/// owner: every tensor has one device of each node (the one that owns the fewest bytes so far), which the
/// others send their gradients to, which pushes the sum and hands out the parameters that come back: its PCIe
/// lanes carry most (MXNet's `device` store, TensorFlow's variables on GPUs). ring: a reduce-scatter round
/// the node's devices, each of which then pushes its part of every tensor and gets it back, and an all-gather
/// (BytePS). On a single node with servers of its own nothing leaves the devices of these two: owners, or
/// all, update their own part.
enum class LocalAggregation : std::uint8_t { none, host, owner, ring };

/// When parameters go back: as each is updated; when a server has updated all it holds; or when the next
/// step's forward pass first uses them (TensorFlow), so that a step begins with pulls and ends with the
/// update.
enum class PullMode : std::uint8_t { as_ready, after_all, at_first_use };

/// An annotation of replicas that exchange gradients and parameters through servers: where these are, which
/// tensors each of them has, and when they answer.
struct ServerExchange {
  std::vector<EndpointId> servers;  ///< the memories of their hosts
  ServerSharding sharding = ServerSharding::tensor;
  double bucket_bytes = 0;  ///< of sharding `even`
  bool overlap = true;      ///< a message leaves when backward has completed its gradients; else all after it
  LocalAggregation local_aggregation = LocalAggregation::none;
  PullMode pull = PullMode::as_ready;
  ServerMode mode = ServerMode::sync;
  std::uint32_t staleness = 0;       ///< mode ssp
  std::uint32_t backup_workers = 0;  ///< mode sync
  Compression compression;           ///< of what workers push; they get whole parameters back

  bool sums_on_hosts() const { return local_aggregation == LocalAggregation::host; }
  bool sums_on_devices() const {
    return local_aggregation == LocalAggregation::owner || local_aggregation == LocalAggregation::ring;
  }
  /// Whether workers go on one by one. ssp with staleness 0 is sync.
  bool one_by_one() const {
    return mode == ServerMode::async || (mode == ServerMode::ssp && staleness > 0) || backup_workers > 0;
  }
};

}  // namespace convoy::lowering
