// SPDX-License-Identifier: MIT
#include "sim/collectives/nccl_tuning.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace convoy::inline collectives {
namespace {

enum : std::size_t { ll, ll128, simple, protocol_count };
using ByProtocol = std::array<double, protocol_count>;
using ByWire = std::array<ByProtocol, 3>;

// Microseconds: baseLatencies and hwLatencies of src/graph/tuning.cc, NCCL 5067397c.
constexpr ByProtocol base_tree_us{6.8, 14.0, 8.4}, base_ring_us{6.6, 14.0, 8.4};
constexpr ByWire tree_us{{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}};
constexpr ByWire ring_us{{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}};
// Shares of the bus bandwidth that a protocol's payload has, and of it in trees: the same file.
constexpr double ll_tree_share = 1.0 / 3.8, ll_ring_share = 1.0 / 2, tree_share = 0.92;
/// Of the bandwidth that NCCL takes rings of LL between hosts to have, what they get: fitted to the rows of Perlmutter
/// (role fit of results/published/collectives.csv).
constexpr double ll_got_share = 0.45;
/// llMaxBws: of LL at most, in GB/s, by generation, with one host, two, and more.
constexpr std::array<std::array<double, 3>, 4> ll_most_GBps{
    {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
/// nvlsEfficiency: of the switches' sums, by generation.
constexpr std::array<double, 4> switch_share{0, 0, 0.85, 0.74};

// Inside a single host whose devices are joined by NVLink alone, in place of those above. Fitted by least
// mean relative error to nccl-tests with 2, 4 and 8 A100, H100 and B200 (role fit of results/published/
// collectives.csv); the step of Simple comes out as NCCL has it. By generation: what a call takes when calls
// follow one another, and a step of LL. By protocol: in addition before the first step, and shares of
// bandwidth.
constexpr std::array<double, 4> call_us{9.6, 9.6, 5.1, 7.3}, inside_ll_us{0.86, 0.86, 0.79, 1.35};
constexpr double inside_ll128_us = 0.62, inside_switch_us = 91;
constexpr ByProtocol inside_base_us{0, 11, 13}, inside_share{0.38, 0.7, 1};
/// Of the links' bandwidth: all-reduces, by generation; of these halves, and all sums of two devices whose links go to a
/// switch (two that cables join get all of them).
constexpr std::array<double, 4> inside_bus_share{0.89, 0.89, 1.03, 0.92};
constexpr double half_share = 0.86, pair_share = 0.8;

/// Bytes of a piece of a channel, before which a tree's next level has nothing to pass on: fitted to the
/// all-reduces of one device a host (role fit of results/published/collectives.csv). They take the place of
/// the shares by size (tree_correction) of NCCL's tuning.
constexpr ByProtocol piece_bytes{64.0 * 1024, 0, 256.0 * 1024};
/// Of the bandwidth of a tree, what a piece of LL has: the share of LL in rings in releases of NCCL before the one above.
constexpr double ll_piece_share = 1.0 / 4;

/// Of a message that goes before its receiver has told where to: aws-ofi-nccl, OFI_NCCL_EAGER_MAX_SIZE.
constexpr double eager_bytes = 8192;
/// What a value takes on the wire: LL sends a flag of four bytes with each four.
constexpr ByProtocol wire_share{2, 1, 1};

/// Channels of sums in the switches of several hosts, by generation (NVLS_NCHANNELS of src/transport/nvls.cc,
/// NCCL 2.27), and NCCL's own largest pieces of them up to three hosts, and beyond.
constexpr std::array<double, 4> switch_channels{0, 0, 16, 32};
constexpr double switch_chunk_bytes = 128.0 * 1024, switch_chunk_of_many_bytes = 64.0 * 1024;
/// Share of the bandwidth between hosts that trees of switches' sums get: fitted to all-reduces of 4 and 16
/// p5.48xlarge (role fit of results/published/collectives.csv).
constexpr double switch_tree_share = 0.73;

/// Whether all ranks are in one host and joined by NVLink alone.
bool is_inside(const NcclSituation& situation) {
  return !situation.ideal && situation.hosts == 1 &&
         situation.ring[static_cast<std::size_t>(NcclWire::nvlink)].count == situation.ranks;
}

bool available(const NcclSituation& situation, std::size_t protocol) {
  if (situation.ideal || situation.simple_only) return protocol == simple;
  return protocol != ll128 || is_inside(situation);
}

/// Latency of a step over a route whose latency is that of a step of Simple in a ring, as the catalogue's
/// are. What a step saves, or takes in addition, is software's: routes that are longer have no more of it,
/// and of shorter ones it is the same share.
double step_s(double route_s, double step_us, double simple_us) {
  const double share_s = route_s * step_us / simple_us, moved_s = route_s + 1e-6 * (step_us - simple_us);
  return step_us < simple_us ? std::max(share_s, moved_s) : std::min(share_s, moved_s);
}

double steps_s(const NcclSituation& situation, const NcclHopsByWire& hops, const ByWire& step_us,
               std::size_t protocol) {
  double total_s = 0;
  for (std::size_t wire = 0; wire < hops.size(); ++wire) {
    if (hops[wire].count == 0) continue;
    total_s += hops[wire].count * (situation.ideal ? hops[wire].latency_s
                                                   : step_s(hops[wire].latency_s, step_us[wire][protocol],
                                                            ring_us[wire][simple]));
  }
  return total_s;
}

/// What the messages between hosts wait for their receivers.
/// @param message_bytes values of one of them
double waits_s(const NcclSituation& situation, const NcclHopsByWire& hops, std::size_t protocol,
               double message_bytes) {
  const bool waits = message_bytes * wire_share[protocol] > eager_bytes;
  return waits ? hops[static_cast<std::size_t>(NcclWire::net)].count * situation.handshake_s : 0;
}

/// Before the first step, beyond the least of all protocols, which the transport's start has.
double base_s(const NcclSituation& situation, const ByProtocol& base_us, std::size_t protocol) {
  return situation.ideal ? 0 : 1e-6 * (base_us[protocol] - base_ring_us[ll]);
}

/// Of a device to and from a switch that adds up, over links of so much.
double switch_Bps(const NcclSituation& situation, double links_Bps) {
  return links_Bps * inside_bus_share[situation.generation] * switch_share[situation.generation];
}

double ll_most_Bps(const NcclSituation& situation) {
  return 1e9 * ll_most_GBps[situation.generation][std::min(situation.hosts, 3u) - 1];
}

}  // namespace

double nccl_call_s(std::size_t generation) { return 1e-6 * call_us[generation]; }

double nccl_ring_s(const NcclSituation& situation, double bytes, bool half) {
  double least_s = std::numeric_limits<double>::infinity(), best_s = least_s;
  const double n = situation.ranks, steps = (half ? 1 : 2) * (n - 1);
  const bool inside = is_inside(situation);
  ByWire step_us = ring_us;
  if (inside) step_us[0] = {inside_ll_us[situation.generation], inside_ll128_us, ring_us[0][simple]};
  for (std::size_t p = 0; p < protocol_count; ++p) {
    if (!available(situation, p)) continue;
    double bandwidth_Bps = situation.bus_bandwidth_Bps, got_share = 1;
    if (inside) {
      bandwidth_Bps *= inside_bus_share[situation.generation] * inside_share[p] * (half ? half_share : 1) *
                       (situation.ranks == 2 && !situation.direct ? pair_share : 1);
    } else if (p == ll) {
      bandwidth_Bps = std::min(bandwidth_Bps * ll_ring_share, ll_most_Bps(situation));
      got_share = ll_got_share;
    }
    const double first_s = inside ? 1e-6 * inside_base_us[p] : base_s(situation, base_ring_us, p);
    const double latency_s = first_s + steps / n * steps_s(situation, situation.ring, step_us, p);
    const double bytes_s = steps / n * bytes / bandwidth_Bps;
    const double time_s = latency_s + bytes_s / got_share +
                          steps / n * waits_s(situation, situation.ring, p, bytes / n / situation.channels);
    // Halves go by what NCCL expects, which is LL for messages for which Simple would be faster. What it expects of
    // all-reduces it corrects by their size, so that these are met better by what they take.
    const double judged_s = half ? latency_s + bytes_s : time_s;
    if (judged_s < least_s) least_s = judged_s, best_s = time_s;
  }
  return best_s;
}

double nccl_tree_s(const NcclSituation& situation, double bytes) {
  double best_s = std::numeric_limits<double>::infinity();
  const double levels = std::bit_width(situation.hosts) - 1;
  NcclHopsByWire hops = situation.chain;
  hops[static_cast<std::size_t>(NcclWire::net)] = {levels, situation.between_s};
  for (const std::size_t p : {ll, simple}) {
    // Where switches add up, trees of devices with Simple give way to those of switches.
    if (!available(situation, p) || (p == simple && situation.switch_sums)) continue;
    double bandwidth_Bps = situation.bus_bandwidth_Bps / 2, piece_Bps = bandwidth_Bps, pieces_bytes = 0;
    if (!situation.ideal) {
      bandwidth_Bps *= tree_share;
      pieces_bytes = std::min(bytes, situation.channels * piece_bytes[p]);
    }
    if (p == ll) {
      bandwidth_Bps = std::min(bandwidth_Bps * ll_tree_share, ll_most_Bps(situation));
      piece_Bps = std::min(piece_Bps * ll_piece_share, ll_most_Bps(situation) / 2);
    }
    best_s = std::min(best_s, base_s(situation, base_tree_us, p) + 2 * steps_s(situation, hops, tree_us, p) +
                                  2 * waits_s(situation, hops, p, bytes / situation.channels) +
                                  2 * levels * pieces_bytes / piece_Bps + bytes / bandwidth_Bps);
  }
  return best_s;
}

double nccl_switch_tree_s(const NcclSituation& situation, double bytes) {
  const double levels = std::bit_width(situation.hosts) - 1;
  const double devices_of_host = static_cast<double>(situation.ranks) / situation.hosts;
  const double parts = switch_channels[situation.generation] * devices_of_host;
  double chunk_bytes = situation.tree_chunk_bytes;
  if (chunk_bytes == 0) chunk_bytes = situation.hosts < 4 ? switch_chunk_bytes : switch_chunk_of_many_bytes;
  // From the largest to the smallest: below so many rounds of all parts, pieces are no larger than that.
  constexpr std::array<std::array<double, 2>, 4> smaller{{{32, 256}, {16, 128}, {4, 64}, {1, 32}}};
  for (const auto& [rounds, most_KiB] : smaller)
    if (bytes < rounds * parts * chunk_bytes) chunk_bytes = std::min(chunk_bytes, most_KiB * 1024);
  const double passed_on_bytes = std::min(bytes, parts * chunk_bytes);
  // With more than two hosts, an inner node of a tree sends and gets every value twice.
  const double wires_Bps = situation.bus_bandwidth_Bps / (situation.hosts > 2 ? 2 : 1);
  NcclHopsByWire hops{};
  hops[static_cast<std::size_t>(NcclWire::net)] = {levels, situation.between_s};
  return 1e-6 * inside_switch_us + 2 * steps_s(situation, hops, tree_us, simple) +
         2 * waits_s(situation, hops, simple, passed_on_bytes / parts) +
         2 * levels * passed_on_bytes / (situation.bus_bandwidth_Bps / 2) +
         bytes / std::min(switch_tree_share * wires_Bps,
                          switch_Bps(situation, situation.inside_bandwidth_Bps) / (1 + 1 / devices_of_host));
}

double nccl_switch_s(const NcclSituation& situation, double bytes) {
  return 1e-6 * inside_switch_us +
         (1 + 1.0 / situation.ranks) * bytes / switch_Bps(situation, situation.bus_bandwidth_Bps);
}

}  // namespace convoy::collectives
