// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/collectives/collectives.h"
#include "sim/collectives/rings.h"

namespace convoy::inline collectives {
namespace {

constexpr std::uint32_t root = std::numeric_limits<std::uint32_t>::max();
constexpr double most_chunks = 64;

/// Parent of node i of n in the in-order binary tree with node 0 above it: odd nodes are leaves, and the
/// parent of a node has its lowest set bit cleared and the next one set, if there is such a node.
std::uint32_t in_order_parent(std::uint32_t i, std::uint32_t n) {
  if (i == 0) return root;
  const std::uint32_t bit = i & (~i + 1), above = (i ^ bit) | (bit << 1);
  return above < n ? above : i ^ bit;
}

/// The second tree is the first one with its nodes mirrored (n even) or rotated by one (n odd), so that an
/// inner node of one tree is a leaf of the other.
std::uint32_t tree_parent(std::uint32_t i, std::uint32_t n, bool second) {
  if (!second) return in_order_parent(i, n);
  const std::uint32_t other = n % 2 == 0 ? n - 1 - i : (i + n - 1) % n;
  const std::uint32_t parent = in_order_parent(other, n);
  if (parent == root) return root;
  return n % 2 == 0 ? n - 1 - parent : (parent + 1) % n;
}

/// Parents of the ranks' positions: inside a host, ranks form a chain whose first (in the second tree: last)
/// rank is a node of a tree.
std::vector<std::uint32_t> parents(const std::vector<std::vector<std::uint32_t>>& chains, std::size_t ranks,
                                   bool second) {
  const auto n = static_cast<std::uint32_t>(chains.size());
  std::vector<std::uint32_t> result(ranks, root);
  const auto head = [&](std::uint32_t host) { return second ? chains[host].back() : chains[host].front(); };
  for (std::uint32_t host = 0; host < n; ++host) {
    const std::vector<std::uint32_t>& chain = chains[host];
    for (std::size_t i = 1; i < chain.size(); ++i)
      result[second ? chain[i - 1] : chain[i]] = second ? chain[i] : chain[i - 1];
    const std::uint32_t parent = tree_parent(host, n, second);
    if (parent != root) result[head(host)] = head(parent);
  }
  return result;
}

std::vector<std::uint32_t> depths(const std::vector<std::uint32_t>& parent) {
  std::vector<std::uint32_t> result(parent.size(), 0);
  for (std::uint32_t i = 0; i < parent.size(); ++i)
    for (std::uint32_t at = parent[i]; at != root; at = parent[at]) ++result[i];
  return result;
}

/// An edge of a tree in one direction, on which chunks are sent from round `first` on, one a round.
struct TreeEdge {
  std::uint32_t from, to, first;
};

/// k in the description of the pattern.
std::uint32_t chunk_count(const std::vector<TreeEdge>& edges, const std::vector<EndpointId>& ranks,
                          std::uint32_t levels, const Machine& machine, double bytes) {
  double latency_s = 0, narrowest_Bps = std::numeric_limits<double>::infinity();
  Route route;
  for (const TreeEdge& edge : edges) {
    machine.router->route(ranks[edge.from], ranks[edge.to], route);
    latency_s = std::max(latency_s, route.latency_s);
    for (const LinkId link : route.links)
      narrowest_Bps = std::min(narrowest_Bps, machine.links[link].bandwidth_Bps);
  }
  const double transfer_s = 2 * bytes / narrowest_Bps;
  if (transfer_s == 0) return 1;
  if (latency_s == 0) return static_cast<std::uint32_t>(most_chunks);
  const double best = std::sqrt((2.0 * levels - 1) * transfer_s / latency_s);
  return static_cast<std::uint32_t>(std::clamp(std::round(best), 1.0, most_chunks));
}

}  // namespace

Pattern double_binary_tree_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                      double bytes, RingOrder order) {
  Pattern pattern{{ranks}, {}};
  if (ranks.size() < 2) return pattern;
  const std::vector<std::vector<std::vector<std::uint32_t>>> channels =
      channels_by_host(ranks, machine, order);
  const std::size_t channel_count = channels[0].size();
  std::vector<TreeEdge> edges;
  std::uint32_t most_levels = 0;
  for (std::size_t channel = 0; channel < channel_count; ++channel) {
    std::vector<std::vector<std::uint32_t>> chains;
    for (const auto& host : channels) chains.push_back(host[channel]);
    for (const bool second : {false, true}) {
      const std::vector<std::uint32_t> parent = parents(chains, ranks.size(), second), depth = depths(parent);
      const std::uint32_t levels = *std::max_element(depth.begin(), depth.end());
      most_levels = std::max(most_levels, levels);
      for (std::uint32_t i = 0; i < ranks.size(); ++i) {
        if (parent[i] == root) continue;
        edges.push_back({i, parent[i], levels - depth[i]});
        edges.push_back({parent[i], i, levels + depth[i] - 1});
      }
    }
  }
  const std::uint32_t chunks =
      chunk_count(edges, ranks, most_levels, machine, bytes / static_cast<double>(channel_count));
  // By round: the edges on which the first chunk is sent then.
  std::vector<std::size_t> beginning(2 * most_levels + chunks, 0);
  for (const TreeEdge& edge : edges) ++beginning[edge.first];
  const auto ended = [&](std::uint32_t round) { return round < chunks ? 0 : beginning[round - chunks]; };
  std::size_t sending = 0;  // edges
  for (std::uint32_t first = 0, next = 0; first < beginning.size(); first = next) {
    sending += beginning[first] - ended(first);
    for (next = first + 1; next < beginning.size() && beginning[next] == 0 && ended(next) == 0;) ++next;
    if (sending == 0) continue;
    Round round{{}, {0.5 / static_cast<double>(chunks * channel_count)}, next - first};
    round.pairs.reserve(sending);
    for (const TreeEdge& edge : edges)
      if (edge.first <= first && first < edge.first + chunks) round.pairs.emplace_back(edge.from, edge.to);
    pattern.rounds.push_back(std::move(round));
  }
  return pattern;
}

}  // namespace convoy::collectives
