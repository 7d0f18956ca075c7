// SPDX-License-Identifier: MIT
#include "strategies/collectives.h"

#include <algorithm>
#include <bit>

namespace convoy {
namespace {

using Position = std::uint32_t;

/// Binomial reduce of `members` (positions) to their first: in round k, members at odd multiples of 2^k send
/// to the member 2^k before. Appends to rounds[k].
void add_binomial_reduce(const std::vector<Position>& members, std::vector<Round>& rounds) {
  std::size_t k = 0;
  for (std::size_t distance = 1; distance < members.size(); distance *= 2, ++k) {
    if (rounds.size() <= k) rounds.push_back({{}, {1.0}, 1});
    for (std::size_t i = distance; i < members.size(); i += 2 * distance)
      rounds[k].pairs.emplace_back(members[i], members[i - distance]);
  }
}

/// The same rounds backwards, each message the other way: broadcast after reduce, all-gather after
/// reduce-scatter.
std::vector<Round> mirrored(const std::vector<Round>& rounds) {
  std::vector<Round> result(rounds.rbegin(), rounds.rend());
  for (Round& round : result)
    for (auto& [from, to] : round.pairs) std::swap(from, to);
  return result;
}

void append(std::vector<Round>& rounds, const std::vector<Round>& more) {
  rounds.insert(rounds.end(), more.begin(), more.end());
}

/// One message from each member to the next, around each of the rings.
Round ring_round(const std::vector<std::vector<Position>>& rings, double fraction, std::size_t repeat) {
  Round round{{}, {fraction}, static_cast<std::uint32_t>(repeat)};
  for (const std::vector<Position>& ring : rings)
    for (std::size_t i = 0; i < ring.size(); ++i)
      round.pairs.emplace_back(ring[i], ring[(i + 1) % ring.size()]);
  return round;
}

std::vector<Position> all_positions(std::size_t n) {
  std::vector<Position> positions(n);
  for (Position i = 0; i < n; ++i) positions[i] = i;
  return positions;
}

Pattern hierarchical_by_leaders(const std::vector<EndpointId>& ranks,
                                const std::vector<std::vector<Position>>& hosts) {
  std::vector<Round> reduce;
  std::vector<Position> leaders;
  for (const std::vector<Position>& host : hosts) {
    add_binomial_reduce(host, reduce);
    leaders.push_back(host.front());
  }
  Pattern pattern{{ranks}, reduce};
  pattern.rounds.push_back(
      ring_round({leaders}, 1.0 / static_cast<double>(leaders.size()), 2 * (leaders.size() - 1)));
  append(pattern.rounds, mirrored(reduce));
  return pattern;
}

}  // namespace

Pattern ring_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine, RingOrder order) {
  const std::size_t n = ranks.size();
  if (n < 2) return {{ranks}, {}};
  const std::vector<std::vector<Position>> rings = find_rings(ranks, machine, order);
  return {{ranks}, {ring_round(rings, 1.0 / static_cast<double>(rings.size() * n), 2 * (n - 1))}};
}

Pattern tree_all_reduce(const std::vector<EndpointId>& ranks) {
  Pattern pattern{{ranks}, {}};
  add_binomial_reduce(all_positions(ranks.size()), pattern.rounds);
  append(pattern.rounds, mirrored(pattern.rounds));
  return pattern;
}

Pattern halving_doubling_all_reduce(const std::vector<EndpointId>& ranks) {
  Pattern pattern{{ranks}, {}};
  const std::size_t n = ranks.size();
  if (n < 2) return pattern;
  const std::size_t power = std::bit_floor(n), extra = n - power;
  std::vector<Position> active;
  Round fold_in{{}, {1.0}, 1};
  for (Position i = 0; i < n; ++i) {
    if (i < 2 * extra && i % 2 == 1)
      fold_in.pairs.emplace_back(i, i - 1);
    else
      active.push_back(i);
  }
  std::vector<Round> reduce;
  if (extra > 0) reduce.push_back(fold_in);
  double fraction = 0.5;
  for (std::size_t distance = power / 2; distance > 0; distance /= 2, fraction /= 2) {
    Round round{{}, {fraction}, 1};
    for (std::size_t i = 0; i < power; ++i) round.pairs.emplace_back(active[i], active[i ^ distance]);
    reduce.push_back(std::move(round));
  }
  pattern.rounds = reduce;
  append(pattern.rounds, mirrored(reduce));
  return pattern;
}

Pattern hierarchical_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                RingOrder order) {
  const std::vector<std::vector<Position>> hosts = positions_by_host(ranks, machine);
  const std::size_t n = hosts.size(), g = hosts.empty() ? 0 : hosts.front().size();
  if (n < 2 || n == ranks.size()) return ring_all_reduce(ranks, machine, order);
  if (std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host.size() != g; }))
    return hierarchical_by_leaders(ranks, hosts);
  const auto shares = static_cast<double>(g);
  Round inside;
  for (const std::vector<std::vector<Position>>& rings : rings_by_host(ranks, machine, order)) {
    const Round round = ring_round(rings, 1.0 / (shares * static_cast<double>(rings.size())), g - 1);
    inside.repeat = round.repeat;
    inside.pairs.insert(inside.pairs.end(), round.pairs.begin(), round.pairs.end());
    inside.fractions.insert(inside.fractions.end(), round.pairs.size(), round.fractions[0]);
  }
  Round between{{}, {1.0 / (shares * static_cast<double>(n))}, static_cast<std::uint32_t>(2 * (n - 1))};
  for (std::size_t local = 0; local < g; ++local)
    for (std::size_t h = 0; h < n; ++h)
      between.pairs.emplace_back(hosts[h][local], hosts[(h + 1) % n][local]);
  return {{ranks}, {inside, between, inside}};
}

Pattern all_reduce_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order) {
  switch (algorithm) {
    case AllReduceAlgorithm::ring:
      return ring_all_reduce(ranks, machine, order);
    case AllReduceAlgorithm::tree:
      return tree_all_reduce(ranks);
    case AllReduceAlgorithm::halving_doubling:
      return halving_doubling_all_reduce(ranks);
    case AllReduceAlgorithm::hierarchical:
      return hierarchical_all_reduce(ranks, machine, order);
    case AllReduceAlgorithm::automatic:
      break;
  }
  Pattern best = ring_all_reduce(ranks, machine, order);
  double best_s = estimate_s(best, machine, bytes);
  for (Pattern& candidate : std::vector<Pattern>{tree_all_reduce(ranks), halving_doubling_all_reduce(ranks),
                                                 hierarchical_all_reduce(ranks, machine, order)}) {
    const double time_s = estimate_s(candidate, machine, bytes);
    if (time_s >= best_s) continue;
    best = std::move(candidate);
    best_s = time_s;
  }
  return best;
}

double estimate_s(const Pattern& pattern, const Machine& machine, double bytes) {
  double total_s = 0;
  std::vector<double> load(machine.links.size(), 0.0);
  std::vector<LinkId> touched;
  Route route;
  for (const Round& round : pattern.rounds) {
    double latency_s = 0, transfer_s = 0;
    for (const std::vector<EndpointId>& group : pattern.groups) {
      for (std::size_t k = 0; k < round.pairs.size(); ++k) {
        machine.router->route(group[round.pairs[k].first], group[round.pairs[k].second], route);
        latency_s = std::max(latency_s, route.latency_s);
        for (const LinkId link : route.links) {
          if (load[link] == 0) touched.push_back(link);
          load[link] += bytes * round.fraction(k);
        }
      }
    }
    for (const LinkId link : touched) {
      transfer_s = std::max(transfer_s, load[link] / machine.links[link].bandwidth_Bps);
      load[link] = 0;
    }
    touched.clear();
    total_s += round.repeat * (latency_s + transfer_s);
  }
  return total_s;
}

}  // namespace convoy
