// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace convoy::inline collectives {

/// What NCCL's choice between its rings and its double binary trees looks at.
struct NcclSituation {
  std::uint32_t ranks = 1, hosts = 1;
  bool nvlink = false;           ///< between the devices of a host; else PCIe
  double bus_bandwidth_Bps = 0;  ///< of the ring: (2 (N-1)/N) S over the time of an all-reduce of large S
};

/// Times in which NCCL expects an all-reduce of `bytes`, of its fastest protocol (LL, LL128 with NVLink
/// inside one host, Simple): base latency + latency a step + bytes over bandwidth, with the constants of its
/// tuning (latencies: NCCL 5067397c, factors of bandwidth: NCCL 01afd20a, both src/graph/tuning.cc). NCCL's
/// upper limits a channel are left out: channels are not modelled here. For a choice, not a prediction.
double nccl_ring_s(const NcclSituation& situation, double bytes);
double nccl_tree_s(const NcclSituation& situation, double bytes);

}  // namespace convoy::collectives
