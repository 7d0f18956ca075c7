// SPDX-License-Identifier: MIT
#pragma once

#include "sim/collectives/table.h"

namespace convoy::inline collectives {

// What NCCL does: of the algorithms that it has, the one that takes the least time by nccl_tuning.h. Each is
// one round: the bytes of all steps at once, which share the links with whatever else is on them, after the
// time that the steps take beyond these bytes (Round::latency_s), since NCCL's steps differ in latency by
// protocol and follow one another in many small pieces.

/// Rings as of find_rings, double binary trees, or sums in the NVSwitch of a single host (Hopper and later).
Pattern nccl_all_reduce(const CollectiveCall& call);
/// NcclSituation::generation of a DeviceType::generation.
std::size_t nccl_generation(const std::string& generation);

/// Reduce-scatter or all-gather: rings only.
Pattern nccl_half(const CollectiveCall& call);

}  // namespace convoy::collectives
