// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/lowering/compression.h"
#include "sim/lowering/push_messages.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// When a server answers a worker's push: when all workers (or all but the backup workers) have pushed; at
/// once; or as soon as the worker is at most `staleness` steps ahead of the slowest.
enum class ServerMode : std::uint8_t { sync, async, ssp };

/// Where the gradients of a node are added up before they are sent to the servers: nowhere; in the host's
/// memory; on the device that owns the tensor; or around a ring of the node's devices, each of which then has
/// a part of every tensor.
///
/// owner: in each node, every tensor is owned by one device (the one that owns the fewest bytes so far). The
/// other devices send their gradients to it; it pushes the sum, and hands out the parameters that come back,
/// so that its PCIe lanes carry most (MXNet's `device` store, TensorFlow's variables on GPUs). ring: a
/// reduce-scatter around the node's devices, each of which then pushes its part of every tensor and gets it
/// back, and an all-gather (BytePS). With these two, on a single node that runs the servers, nothing is sent
/// to servers: the owners, or all devices, update their own part.
enum class LocalAggregation : std::uint8_t { none, host, owner, ring };

/// When parameters are sent back: as soon as each is updated; when a server has updated all that it holds; or
/// when the forward pass of the next step first uses them (TensorFlow), so that a step begins with pulls and
/// ends with the update.
enum class PullMode : std::uint8_t { as_ready, after_all, at_first_use };

/// An annotation of replicas that exchange gradients and parameters through servers: where the servers are,
/// which tensors each of them holds, and when they answer.
struct ServerExchange {
  std::vector<EndpointId> servers;  ///< the memories of their hosts
  ServerSharding sharding = ServerSharding::tensor;
  double bucket_bytes = 0;  ///< of sharding `even`
  bool overlap = true;      ///< a message is sent as soon as it is complete; otherwise after backward
  LocalAggregation local_aggregation = LocalAggregation::none;
  PullMode pull = PullMode::as_ready;
  /// At which one thread of a node whose host adds up gradients brings the parameters that it pulls into the
  /// memory of devices, one message after the other, before they are handed out. Without limit, they are pulled
  /// into the host's memory as they come.
  double unpack_Bps = std::numeric_limits<double>::infinity();
  ServerMode mode = ServerMode::sync;
  std::uint32_t staleness = 0;       ///< mode ssp
  std::uint32_t backup_workers = 0;  ///< mode sync
  Compression compression;           ///< of what workers push; parameters come back uncompressed

  bool sums_on_hosts() const { return local_aggregation == LocalAggregation::host; }
  bool sums_on_devices() const {
    return local_aggregation == LocalAggregation::owner || local_aggregation == LocalAggregation::ring;
  }
  /// Whether workers proceed without waiting for all others. ssp with staleness 0 is sync.
  bool one_by_one() const {
    return mode == ServerMode::async || (mode == ServerMode::ssp && staleness > 0) || backup_workers > 0;
  }
};

}  // namespace convoy::lowering
