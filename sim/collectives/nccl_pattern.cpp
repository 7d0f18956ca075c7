// SPDX-License-Identifier: MIT
#include "sim/collectives/nccl_pattern.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/collectives/collectives.h"
#include "sim/collectives/nccl_tuning.h"

namespace convoy::inline collectives {
namespace {

using Chain = std::vector<std::uint32_t>;

constexpr double large_bytes = 1e9;

NcclWire wire_of(const Route& route, const Machine& machine) {
  const auto is = [&](LinkKind kind) {
    return [&machine, kind](LinkId link) { return machine.links[link].kind == kind; };
  };
  return std::all_of(route.links.begin(), route.links.end(), is(LinkKind::nvlink)) ? NcclWire::nvlink
                                                                                   : NcclWire::pcie;
}

/// Tells the routes between ranks apart and adds up their latencies.
class Steps {
 public:
  explicit Steps(const CollectiveCall& call) : call_(call) {}

  void add(std::uint32_t from, std::uint32_t to, NcclHopsByWire& hops) {
    call_.machine.router->route(call_.ranks[from], call_.ranks[to], route_);
    const bool inside = call_.machine.host_of(call_.ranks[from]) == call_.machine.host_of(call_.ranks[to]);
    NcclHops& all = hops[static_cast<std::size_t>(inside ? wire_of(route_, call_.machine) : NcclWire::net)];
    direct_ = direct_ && route_.links.size() == 1;
    all.latency_s = (all.count * all.latency_s + route_.latency_s) / (all.count + 1);
    ++all.count;
  }
  /// Whether each route so far is one cable.
  bool direct() const { return direct_; }

 private:
  const CollectiveCall& call_;
  Route route_;
  bool direct_ = true;
};

/// Positions in call.ranks by host, in the order of the ranks.
std::vector<std::vector<std::uint32_t>> ranks_by_host(const CollectiveCall& call) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> hosts;
  for (std::uint32_t i = 0; i < call.ranks.size(); ++i)
    hosts[call.machine.host_of(call.ranks[i])].push_back(i);
  std::vector<std::vector<std::uint32_t>> result;
  for (auto& [host, ranks] : hosts) result.push_back(std::move(ranks));
  return result;
}

/// Bandwidth of the links between ranks and the NVSwitch with sums of its own that joins those of each host: two
/// NVLinks between any two. 0 if there is none, or hosts have one rank, or not as many as each other.
double switch_links_Bps(const CollectiveCall& call, std::size_t generation) {
  if (generation < 2 || call.machine.transport.ideal()) return 0;
  double least_Bps = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<std::uint32_t>> hosts = ranks_by_host(call);
  Route route;
  for (const std::vector<std::uint32_t>& ranks : hosts) {
    if (ranks.size() < 2 || ranks.size() != hosts[0].size()) return 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      call.machine.router->route(call.ranks[ranks[i]], call.ranks[ranks[(i + 1) % ranks.size()]], route);
      if (route.links.size() != 2 || wire_of(route, call.machine) != NcclWire::nvlink) return 0;
      for (const LinkId link : route.links)
        least_Bps = std::min(least_Bps, call.machine.links[link].bandwidth_Bps);
    }
  }
  return least_Bps;
}

double transfer_s(const Pattern& pattern, const Machine& machine, double bytes) {
  return estimate_s(pattern, machine, bytes) - estimate_s(pattern, machine, 0);
}

/// The same messages, of all rounds at once.
Pattern at_once(const Pattern& pattern) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> fractions;
  for (const Round& round : pattern.rounds)
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      fractions[{from, to}] += round.repeat * fraction;
    });
  Pattern result{pattern.groups, {{}}};
  for (const auto& [pair, fraction] : fractions) {
    result.rounds[0].pairs.push_back(pair);
    result.rounds[0].fractions.push_back(fraction);
  }
  const auto [least, most] =
      std::minmax_element(result.rounds[0].fractions.begin(), result.rounds[0].fractions.end());
  if (*least == *most) result.rounds[0].fractions.resize(1);
  return result;
}

/// The pattern with what it takes beyond the transfer of its bytes.
Pattern lasting(Pattern pattern, const CollectiveCall& call, double time_s) {
  pattern.rounds[0].latency_s = 0;
  pattern.rounds[0].latency_s = std::max(0.0, time_s - estimate_s(pattern, call.machine, call.bytes));
  return pattern;
}

NcclSituation situation_of(const CollectiveCall& call, const Pattern& ring) {
  NcclSituation situation;
  const std::vector<std::vector<Chain>> hosts = channels_by_host(call.ranks, call.machine, call.order);
  situation.ranks = static_cast<std::uint32_t>(call.ranks.size());
  situation.hosts = static_cast<std::uint32_t>(hosts.size());
  situation.channels = static_cast<std::uint32_t>(hosts[0].size());
  situation.ideal = call.machine.transport.ideal();
  situation.generation = std::numeric_limits<std::size_t>::max();  // the oldest of all devices' counts
  for (const EndpointId rank : call.ranks)
    situation.generation =
        std::min(situation.generation,
                 nccl_generation(call.machine.device_types[call.machine.devices[rank].type].generation));
  situation.inside_bandwidth_Bps = switch_links_Bps(call, situation.generation);
  situation.switch_sums = situation.inside_bandwidth_Bps > 0;
  situation.handshake_s = call.machine.transport.handshake_s;
  situation.tree_chunk_bytes = call.machine.transport.tree_chunk_bytes;
  situation.simple_only = call.machine.transport.simple_only;
  Steps steps(call);
  const Chain once_around = find_rings(call.ranks, call.machine, call.order)[0];
  for (std::size_t i = 0; i < once_around.size(); ++i)
    steps.add(once_around[i], once_around[(i + 1) % once_around.size()], situation.ring);
  situation.direct = steps.direct();
  std::size_t longest = 0;
  for (std::size_t h = 1; h < hosts.size(); ++h)
    if (hosts[h][0].size() > hosts[longest][0].size()) longest = h;
  const Chain& chain = hosts[longest][0];
  for (std::size_t i = 1; i < chain.size(); ++i) steps.add(chain[i - 1], chain[i], situation.chain);
  situation.between_s = situation.ring[static_cast<std::size_t>(NcclWire::net)].latency_s;
  const double n = situation.ranks;
  situation.bus_bandwidth_Bps = 2 * (n - 1) / n * large_bytes / transfer_s(ring, call.machine, large_bytes);
  return situation;
}

/// What devices send to their hosts' switches and get from them, as messages to the next one, and the trees of
/// the devices with the same number.
Pattern switch_tree(const CollectiveCall& call) {
  const std::vector<std::vector<std::uint32_t>> hosts = ranks_by_host(call);
  const std::size_t count = hosts[0].size();
  Pattern result{{call.ranks}, {{}}};
  Round& round = result.rounds[0];
  const auto add = [&round](std::uint32_t from, std::uint32_t to, double fraction) {
    round.pairs.emplace_back(from, to);
    round.fractions.push_back(fraction);
  };
  for (const std::vector<std::uint32_t>& ranks : hosts)
    for (std::size_t i = 0; i < count; ++i)
      add(ranks[i], ranks[(i + 1) % count], 1 + 1.0 / static_cast<double>(count));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<EndpointId> rail;
    for (const std::vector<std::uint32_t>& ranks : hosts) rail.push_back(call.ranks[ranks[i]]);
    for (const Round& of_rail : double_binary_tree_all_reduce(rail, call.machine, 0, call.order).rounds)
      of_rail.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        add(hosts[from][i], hosts[to][i], of_rail.repeat * fraction / static_cast<double>(count));
      });
  }
  return at_once(result);
}

}  // namespace

std::size_t nccl_generation(const std::string& generation) {
  if (generation == "ampere" || generation == "ada") return 1;
  if (generation == "hopper") return 2;
  return generation == "blackwell" ? 3 : 0;
}

Pattern nccl_all_reduce(const CollectiveCall& call) {
  if (call.ranks.size() < 2) return {{call.ranks}, {}};
  const Pattern ring = at_once(ring_all_reduce(call.ranks, call.machine, call.order));
  const NcclSituation situation = situation_of(call, ring);
  Pattern best = lasting(ring, call, nccl_ring_s(situation, call.bytes, false));
  double best_s = estimate_s(best, call.machine, call.bytes);
  // A pattern takes no less than `time_s`, and more where the bytes alone take longer on the links that there
  // are.
  const auto consider = [&](double time_s, auto messages) {
    if (time_s >= best_s) return;
    Pattern other = lasting(messages(), call, time_s);
    const double other_s = estimate_s(other, call.machine, call.bytes, best_s);
    if (other_s < best_s) best = std::move(other), best_s = other_s;
  };
  // In one chunk: how many there are does not matter to what the edges carry.
  if (situation.hosts > 1)
    consider(nccl_tree_s(situation, call.bytes), [&] {
      return at_once(double_binary_tree_all_reduce(call.ranks, call.machine, 0, call.order));
    });
  if (situation.hosts > 1 && situation.switch_sums)
    consider(nccl_switch_tree_s(situation, call.bytes), [&] { return switch_tree(call); });
  // What a device sends to the switch and gets from it, as messages to the next one.
  if (situation.hosts == 1 && situation.switch_sums)
    consider(nccl_switch_s(situation, call.bytes), [&] {
      Pattern in_switch = ring;
      in_switch.rounds[0].fractions = {1 + 1.0 / situation.ranks};
      return in_switch;
    });
  return best;
}

Pattern nccl_half(const CollectiveCall& call) {
  if (call.ranks.size() < 2) return {{call.ranks}, {}};
  const NcclSituation situation =
      situation_of(call, at_once(ring_all_reduce(call.ranks, call.machine, call.order)));
  const Pattern ring = at_once({{call.ranks}, ring_half(call.ranks, call.machine, call.order)});
  return lasting(ring, call, nccl_ring_s(situation, call.bytes, true));
}

}  // namespace convoy::collectives
