// SPDX-License-Identifier: MIT
#include "sim/collectives/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace convoy::inline collectives {
namespace {

using Position = std::uint32_t;

/// Binomial reduce of `members` (positions) to the first of them: in round k, members at odd multiples of 2^k
/// send to the member 2^k before them. Appends to rounds[k].
void add_binomial_reduce(const std::vector<Position>& members, std::vector<Round>& rounds) {
  std::size_t k = 0;
  for (std::size_t distance = 1; distance < members.size(); distance *= 2, ++k) {
    if (rounds.size() <= k) rounds.push_back({{}, {1.0}, 1});
    for (std::size_t i = distance; i < members.size(); i += 2 * distance)
      rounds[k].pairs.emplace_back(members[i], members[i - distance]);
  }
}

/// The same rounds in reverse order, with each message in the opposite direction: broadcast after reduce,
/// all-gather after reduce-scatter.
std::vector<Round> mirrored(const std::vector<Round>& rounds) {
  std::vector<Round> result;
  for (auto it = rounds.rbegin(); it != rounds.rend(); ++it) result.push_back(it->reversed());
  return result;
}

void append(std::vector<Round>& rounds, const std::vector<Round>& more) {
  rounds.insert(rounds.end(), more.begin(), more.end());
}

/// One message from each member to the next, around every ring.
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

/// Half of a hierarchical all-reduce over n hosts with g ranks each: ring rounds inside the hosts, and g
/// parallel ring rounds of S/g between them.
struct HierarchicalRounds {
  Round inside, between;
};

HierarchicalRounds hierarchical_rounds(const std::vector<EndpointId>& ranks,
                                       const std::vector<std::vector<Position>>& hosts,
                                       const Machine& machine, RingOrder order) {
  const std::size_t n = hosts.size(), g = hosts.front().size();
  const auto shares = static_cast<double>(g);
  HierarchicalRounds result;
  for (const std::vector<std::vector<Position>>& rings : rings_by_host(ranks, machine, order)) {
    const Round round = ring_round(rings, 1.0 / (shares * static_cast<double>(rings.size())), g - 1);
    result.inside.repeat = round.repeat;
    result.inside.pairs.insert(result.inside.pairs.end(), round.pairs.begin(), round.pairs.end());
    result.inside.fractions.insert(result.inside.fractions.end(), round.pairs.size(), round.fractions[0]);
  }
  result.between = {{}, {1.0 / (shares * static_cast<double>(n))}, static_cast<std::uint32_t>(n - 1)};
  for (std::size_t local = 0; local < g; ++local)
    for (std::size_t h = 0; h < n; ++h)
      result.between.pairs.emplace_back(hosts[h][local], hosts[(h + 1) % n][local]);
  return result;
}

bool equal_hosts(const std::vector<std::vector<Position>>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](const auto& host) { return host.size() == hosts.front().size(); });
}

/// Whether there is at most one host, or at most one rank on each host: then only a ring is needed.
bool flat(const std::vector<std::vector<Position>>& hosts, std::size_t ranks) {
  return hosts.size() < 2 || hosts.size() == ranks;
}

/// Rounds of recursive halving for this many `active` positions, a power of two, starting with the farthest
/// partner.
std::vector<Round> halving_rounds(const std::vector<Position>& active) {
  std::vector<Round> rounds;
  double fraction = 0.5;
  for (std::size_t distance = active.size() / 2; distance > 0; distance /= 2, fraction /= 2) {
    Round round{{}, {fraction}, 1};
    for (std::size_t i = 0; i < active.size(); ++i) round.pairs.emplace_back(active[i], active[i ^ distance]);
    rounds.push_back(std::move(round));
  }
  return rounds;
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
  append(reduce, halving_rounds(active));
  pattern.rounds = reduce;
  append(pattern.rounds, mirrored(reduce));
  return pattern;
}

Pattern hierarchical_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                RingOrder order) {
  const std::vector<std::vector<Position>> hosts = positions_by_host(ranks, machine);
  if (flat(hosts, ranks.size())) return ring_all_reduce(ranks, machine, order);
  if (!equal_hosts(hosts)) return hierarchical_by_leaders(ranks, hosts);
  const HierarchicalRounds rounds = hierarchical_rounds(ranks, hosts, machine, order);
  Round between = rounds.between;
  between.repeat *= 2;
  return {{ranks}, {rounds.inside, between, rounds.inside}};
}

std::vector<Round> ring_half(const std::vector<EndpointId>& ranks, const Machine& machine, RingOrder order) {
  const std::size_t n = ranks.size();
  if (n < 2) return {};
  const std::vector<std::vector<Position>> rings = find_rings(ranks, machine, order);
  return {ring_round(rings, 1.0 / static_cast<double>(rings.size() * n), n - 1)};
}

std::vector<Round> halving_doubling_half(const std::vector<EndpointId>& ranks, bool gather) {
  if (ranks.size() < 2) return {};
  const std::vector<Round> halving = halving_rounds(all_positions(ranks.size()));
  return gather ? mirrored(halving) : halving;
}

std::vector<Round> hierarchical_half(const std::vector<EndpointId>& ranks, const Machine& machine,
                                     RingOrder order, bool gather) {
  const std::vector<std::vector<Position>> hosts = positions_by_host(ranks, machine);
  if (flat(hosts, ranks.size())) return ring_half(ranks, machine, order);
  const HierarchicalRounds rounds = hierarchical_rounds(ranks, hosts, machine, order);
  if (gather) return {rounds.between, rounds.inside};
  return {rounds.inside, rounds.between};
}

bool has_equal_hosts(const std::vector<EndpointId>& ranks, const Machine& machine) {
  return equal_hosts(positions_by_host(ranks, machine));
}

Plan collective_of_all(Pattern pattern, std::string name, double bytes, const Machine& machine) {
  Role role;
  role.name = "worker";
  role.streams = {"compute", "communication"};
  for (EndpointId d = 0; d < machine.devices.size(); ++d) role.members.push_back(d);
  Task task;
  task.name = name;
  task.kind = Task::Kind::collective;
  task.stream = 1;
  role.program.push_back(std::move(task));
  Plan plan;
  plan.patterns.push_back(std::move(pattern));
  plan.communications.push_back(
      {std::move(name), 0, bytes, Fidelity::automatic, machine.collective_overhead_s});
  plan.roles.push_back(std::move(role));
  return plan;
}

}  // namespace convoy::collectives
