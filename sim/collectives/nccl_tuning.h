// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace convoy::inline collectives {

/// What a message between two ranks goes over, as NCCL's tuning tells it.
enum class NcclWire : std::uint8_t { nvlink, pcie, net };

/// Messages that follow one another.
struct NcclHops {
  double count = 0;
  double latency_s = 0;  ///< of the route of one, on average
};
using NcclHopsByWire = std::array<NcclHops, 3>;

/// On what NCCL's choice between its algorithms and protocols depends.
struct NcclSituation {
  std::uint32_t ranks = 1, hosts = 1;
  std::uint32_t channels = 1;    ///< rings side by side, and pairs of trees
  double bus_bandwidth_Bps = 0;  ///< of the rings: (2 (N-1)/N) S over the time of an all-reduce of large S
  NcclHopsByWire ring;           ///< once around a ring
  NcclHopsByWire chain;          ///< from the last rank of a host to the one at which the edges of trees end
  double between_s = 0;          ///< latency of the route of a tree's edge
  std::size_t generation = 0;  ///< 0 Volta and before, 1 Ampere and Ada, 2 Hopper, 3 Blackwell
  /// Wires without any software: messages take the latency and the bandwidth of their routes.
  bool ideal = false;
  bool direct =
      false;  ///< each rank of a ring inside a host has cables to the next one, with no switch between
  bool switch_sums = false;  ///< NVSwitches that add up join the ranks of each host (NVLS), as many in each
  double inside_bandwidth_Bps = 0;  ///< of a rank's links to its host's switch, one way, with switch_sums
  /// Of the fabric (NicSpec): what a message between hosts that does not go at once waits for its receiver, and
  /// the largest piece of a sum in the switches that goes to the next host; 0: NCCL's own.
  double handshake_s = 0, tree_chunk_bytes = 0;
  bool simple_only = false;  ///< the network's library allows the Simple protocol alone
};

/// What a call of NCCL takes on a device before its first step when calls follow one another without pause,
/// as in nccl-tests inside one host. Transport::start_s is that of a framework's call, and includes this
/// time.
double nccl_call_s(std::size_t generation);

/// The time of an all-reduce of `bytes` with the protocol that is the fastest for it, or with `half` of a reduce-scatter
/// or all-gather with the one that NCCL expects to be (LL, Simple; inside one host over NVLink also LL128, in rings): for each step
/// the latency of its route, shorter by what the protocol's step is shorter than one of Simple in a ring, and
/// bytes over bandwidth. A message between hosts that is larger than what the network's library sends at once
/// also waits for its receiver (handshake_s). Between hosts, latencies of steps, shares and limits of bandwidths are those of
/// NCCL's tuning (src/graph/tuning.cc of NCCL 5067397c), and trees pass on a piece when all of it is there;
/// inside a host they are fitted. Without what comes before the first step (Transport::start_s).
double nccl_ring_s(const NcclSituation& situation, double bytes, bool half);
/// Double binary trees; all-reduce only. @pre several hosts
double nccl_tree_s(const NcclSituation& situation, double bytes);
/// Sums in the hosts' switches, which double binary trees of the devices with the same number add up (NVLSTree):
/// every device sends and gets (1 + 1/D) S inside its host of D and its share S/D between hosts. A level of the
/// trees passes a piece on when all of it is there; how large pieces are is NCCL's rule (src/enqueue.cc, NCCL
/// 2.27), on which the time of middle sizes depends. All-reduce only. @pre switch_sums, several hosts
double nccl_switch_tree_s(const NcclSituation& situation, double bytes);
/// Sums in the switch (NVLS): every device sends and gets (1 + 1/N) S. All-reduce only.
/// @pre switch_sums, one host
double nccl_switch_s(const NcclSituation& situation, double bytes);

}  // namespace convoy::collectives
