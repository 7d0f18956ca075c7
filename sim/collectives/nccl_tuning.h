// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace convoy::inline collectives {

/// The situation on which NCCL's choice between its rings and its double binary trees depends.
struct NcclSituation {
  std::uint32_t ranks = 1, hosts = 1;
  bool nvlink = false;           ///< between the devices of a host; else PCIe
  double bus_bandwidth_Bps = 0;  ///< of the ring: (2 (N-1)/N) S over the time of an all-reduce of large S
};

/// The time that NCCL expects for an all-reduce of `bytes` with its fastest protocol (LL, LL128 with NVLink
/// inside one host, Simple): base latency + latency per step + bytes over bandwidth, with the constants of
/// its tuning (latencies: NCCL 5067397c, factors of bandwidth: NCCL 01afd20a, both src/graph/tuning.cc).
/// NCCL's upper limits per channel are left out, since channels are not modelled here. For choosing an
/// algorithm, not a prediction.
double nccl_ring_s(const NcclSituation& situation, double bytes);
double nccl_tree_s(const NcclSituation& situation, double bytes);

}  // namespace convoy::collectives
