// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/base/input_error.h"
#include "sim/collectives/table.h"
#include "sim/lowering/compression.h"
#include "sim/plan/plan.h"
#include "strategies/replicas.h"

namespace convoy {

/// What `sync: all_reduce` is asked for.
struct AllReduceOptions {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
  RingOrder rings = RingOrder::mesh;
  double bucket_bytes = 0;
  bool overlap = true;
  Fidelity fidelity = Fidelity::automatic;
  Shares shares = Shares::equal;
  std::int64_t micro_batches = 1;
  int zero = 0;  ///< stage of ZeRO (sharded_states.h)
  Compression compression;
  SourcePos algorithm_pos;  ///< for errors about what the cluster does not allow
};

constexpr int communication_stream = 1;  ///< of a replica's role

}  // namespace convoy
