// SPDX-License-Identifier: MIT
#include "sim/collectives/nccl_tuning.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace convoy::inline collectives {
namespace {

enum : std::size_t { ll, ll128, simple, protocol_count };
using ByProtocol = std::array<double, protocol_count>;

// Microseconds: baseLatencies and hwLatencies of src/graph/tuning.cc, NCCL 5067397c.
constexpr ByProtocol base_tree_us{6.8, 14.0, 8.4}, base_ring_us{6.6, 14.0, 8.4};
constexpr ByProtocol nvlink_tree_us{0.6, 1.25, 4.0}, nvlink_ring_us{0.6, 1.9, 3.4};
constexpr ByProtocol pcie_tree_us{1.0, 1.9, 4.0}, pcie_ring_us{1.0, 2.5, 5.7};
constexpr ByProtocol net_tree_us{5.0, 8.5, 14.0}, net_ring_us{2.7, 4.0, 14.0};

// Factors of src/graph/tuning.cc, NCCL 01afd20a: share of the bus bandwidth that a protocol's payload has ...
constexpr double ll_ring_share = 1.0 / 4, ll_tree_share = 1.0 / 3.8, tree_share = 0.9;
constexpr double ll128_ring_share = 0.92, ll128_tree_share = 7.0 / 9;
// ... latency of LL inside hosts where there are several, of the ring's Simple protocol from
// ranks / 16 x 65,536 bytes on where there are several hosts ...
constexpr double ll_inside_factor = 1.8, ring_plateau_factor = 1.9;
// ... and by how much trees fall short of their bandwidth, by size: powers of two from 64 bytes on.
constexpr std::array<std::array<double, 22>, protocol_count> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9}}};

double correction(std::size_t protocol, double bytes) {
  const auto units = static_cast<std::uint64_t>(std::max(64.0, std::min(bytes, 1e15))) >> 6;
  const auto size = static_cast<std::size_t>(std::bit_width(units)) - 1;
  return size < tree_correction[protocol].size() ? tree_correction[protocol][size] : 1;
}

bool available(const NcclSituation& situation, std::size_t protocol) {
  return protocol != ll128 || (situation.nvlink && situation.hosts == 1);
}

}  // namespace

double nccl_ring_s(const NcclSituation& situation, double bytes) {
  double best_s = std::numeric_limits<double>::infinity();
  const double steps = 2 * (situation.ranks - 1.0), between = 2 * (situation.hosts - 1.0);
  for (std::size_t p = 0; p < protocol_count; ++p) {
    if (!available(situation, p)) continue;
    double inside_us = (situation.nvlink ? nvlink_ring_us : pcie_ring_us)[p];
    if (p == ll && situation.hosts > 1) inside_us *= ll_inside_factor;
    double latency_us = base_ring_us[p] + (steps - between) * inside_us + between * net_ring_us[p];
    if (p == simple && situation.hosts > 1 && bytes >= situation.ranks / 16.0 * 65536)
      latency_us *= ring_plateau_factor;
    const double share = p == ll ? ll_ring_share : p == ll128 ? ll128_ring_share : 1;
    const double bandwidth_Bps = situation.bus_bandwidth_Bps * share * situation.ranks / steps;
    best_s = std::min(best_s, 1e-6 * latency_us + bytes / bandwidth_Bps);
  }
  return best_s;
}

double nccl_tree_s(const NcclSituation& situation, double bytes) {
  double best_s = std::numeric_limits<double>::infinity();
  const double in_chain = static_cast<double>(situation.ranks / situation.hosts) - 1;
  const double levels = std::bit_width(situation.hosts) - 1;
  for (std::size_t p = 0; p < protocol_count; ++p) {
    if (!available(situation, p)) continue;
    double inside_us = (situation.nvlink ? nvlink_tree_us : pcie_tree_us)[p];
    if (p == ll && situation.hosts > 1) inside_us *= ll_inside_factor;
    const double latency_us = base_tree_us[p] + 2 * (in_chain * inside_us + levels * net_tree_us[p]);
    const double share = tree_share * (p == ll ? ll_tree_share : p == ll128 ? ll128_tree_share : 1);
    const double bandwidth_Bps = situation.bus_bandwidth_Bps * share * correction(p, bytes) / 2;
    best_s = std::min(best_s, 1e-6 * latency_us + bytes / bandwidth_Bps);
  }
  return best_s;
}

}  // namespace convoy::collectives
