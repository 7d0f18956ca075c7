// SPDX-License-Identifier: MIT
#include "sim/collectives/rings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace convoy::inline collectives {
namespace {

using Order = std::vector<std::uint32_t>;

/// Cables between a few devices, counted in units of the narrowest one.
class CableGraph {
 public:
  CableGraph(const std::vector<EndpointId>& devices, const Machine& machine)
      : n_(devices.size()), cables_(n_ * n_, 0) {
    std::vector<double> bandwidth_Bps(n_ * n_, 0.0);
    double unit_Bps = 0;
    Route route;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        if (i == j) continue;
        machine.router->route(devices[i], devices[j], route);
        if (route.links.size() != 1) continue;
        const double bandwidth = machine.links[route.links[0]].bandwidth_Bps;
        bandwidth_Bps[i * n_ + j] = bandwidth;
        unit_Bps = unit_Bps == 0 ? bandwidth : std::min(unit_Bps, bandwidth);
      }
    }
    if (unit_Bps > 0)
      for (std::size_t k = 0; k < cables_.size(); ++k)
        cables_[k] = static_cast<int>(std::floor(bandwidth_Bps[k] / unit_Bps + 1e-9));
  }

  /// The largest set of edge-disjoint Hamiltonian cycles that a bounded search finds.
  std::vector<Order> disjoint_cycles() {
    if (n_ < 3) return {};
    most_ = *std::max_element(cables_.begin(), cables_.end()) == 0 ? 0 : degree() / 2;
    Order path{0};
    std::vector<char> visited(n_, 0);
    visited[0] = 1;
    extend(path, visited);
    return best_;
  }

 private:
  static constexpr int search_steps = 200'000;  // DGX-1 meshes need a few hundred

  /// Number of cables of the device with the fewest: at most half as many cycles can pass through it.
  std::size_t degree() const {
    std::size_t least = n_ * 64;
    for (std::size_t i = 0; i < n_; ++i) {
      std::size_t sum = 0;
      for (std::size_t j = 0; j < n_; ++j) sum += static_cast<std::size_t>(cables_[i * n_ + j]);
      least = std::min(least, sum);
    }
    return least;
  }

  void take(std::size_t i, std::size_t j, int count) {
    cables_[i * n_ + j] -= count;
    cables_[j * n_ + i] -= count;
  }

  void extend(Order& path, std::vector<char>& visited) {
    if (best_.size() >= most_ || ++steps_ > search_steps) return;
    const std::size_t last = path.back();
    if (path.size() == n_) {
      if (cables_[last * n_] == 0) return;
      take(last, 0, 1);
      found_.push_back(path);
      if (found_.size() > best_.size()) best_ = found_;
      Order next{0};
      std::vector<char> fresh(n_, 0);
      fresh[0] = 1;
      extend(next, fresh);
      found_.pop_back();
      take(last, 0, -1);
      return;
    }
    for (std::uint32_t next = 1; next < n_; ++next) {
      if (visited[next] || cables_[last * n_ + next] == 0) continue;
      take(last, next, 1);
      visited[next] = 1;
      path.push_back(next);
      extend(path, visited);
      path.pop_back();
      visited[next] = 0;
      take(last, next, -1);
    }
  }

  std::size_t n_;
  std::vector<int> cables_;
  std::size_t most_ = 0;
  int steps_ = 0;
  std::vector<Order> found_, best_;
};

double narrowest_Bps(const Machine& machine, EndpointId from, EndpointId to, Route& route) {
  machine.router->route(from, to, route);
  double narrowest = std::numeric_limits<double>::infinity();
  for (const LinkId link : route.links) narrowest = std::min(narrowest, machine.links[link].bandwidth_Bps);
  return narrowest;
}

/// Rotates the cycle of a host so that a ring over several hosts enters and leaves it where the routes to
/// other hosts are widest, and among these shortest: near its NIC.
void begin_and_end_near_nic(Order& cycle, const std::vector<EndpointId>& devices, const Machine& machine) {
  const std::uint32_t host = machine.devices[devices[0]].host;
  if (machine.hosts.size() < 2) return;
  const EndpointId elsewhere = machine.host_endpoint(host == 0 ? 1 : 0);
  std::vector<std::pair<double, double>> out, in;  // bandwidth and negative length, so that larger is better
  Route route;
  for (const EndpointId device : devices) {
    const double width_out = narrowest_Bps(machine, device, elsewhere, route);
    out.emplace_back(width_out, -static_cast<double>(route.links.size()));
    const double width_in = narrowest_Bps(machine, elsewhere, device, route);
    in.emplace_back(width_in, -static_cast<double>(route.links.size()));
  }
  const auto value = [&](std::size_t first) {
    const std::uint32_t enters = cycle[first], leaves = cycle[(first + cycle.size() - 1) % cycle.size()];
    return std::pair{std::min(in[enters].first, out[leaves].first), in[enters].second + out[leaves].second};
  };
  std::size_t best = 0;
  for (std::size_t first = 1; first < cycle.size(); ++first)
    if (value(first) > value(best)) best = first;
  std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(best), cycle.end());
}

/// The rings of one host's devices, as indices into `devices`.
std::vector<Order> rings_among(const std::vector<EndpointId>& devices, const Machine& machine,
                               RingOrder order) {
  std::vector<Order> rings;
  if (order == RingOrder::mesh)
    for (Order& cycle : CableGraph(devices, machine).disjoint_cycles()) {
      begin_and_end_near_nic(cycle, devices, machine);
      rings.emplace_back(cycle.rbegin(), cycle.rend());
      rings.push_back(std::move(cycle));
    }
  if (!rings.empty()) return rings;
  Order in_order(devices.size());
  std::iota(in_order.begin(), in_order.end(), 0u);
  return {in_order};
}

/// The hosts of ranks, numbered in the order of their first rank.
struct HostNumbers {
  Order of_rank;  ///< by position
  std::uint32_t count = 0;
};

/// Most ranks are in the order of their hosts: up to the first that is not, its host is new or that of the one before.
HostNumbers number_hosts(const std::vector<EndpointId>& ranks, const Machine& machine) {
  const auto host = [&](std::size_t i) { return machine.devices[ranks[i]].host; };
  HostNumbers numbers;
  numbers.of_rank.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size() && (i == 0 || host(i) >= host(i - 1)); ++i) {
    if (i == 0 || host(i) != host(i - 1)) ++numbers.count;
    numbers.of_rank.push_back(numbers.count - 1);
  }
  if (numbers.of_rank.size() == ranks.size()) return numbers;
  std::unordered_map<std::uint32_t, std::uint32_t> known;
  for (std::size_t i = 0; i < numbers.of_rank.size(); ++i) known.emplace(host(i), numbers.of_rank[i]);
  while (numbers.of_rank.size() < ranks.size()) {
    const auto [it, fresh] = known.emplace(host(numbers.of_rank.size()), numbers.count);
    numbers.count += fresh;
    numbers.of_rank.push_back(it->second);
  }
  return numbers;
}

Order renamed(const Order& cycle, const Order& positions) {
  Order result;
  for (const std::uint32_t i : cycle) result.push_back(positions[i]);
  return result;
}

}  // namespace

std::vector<Order> positions_by_host(const std::vector<EndpointId>& ranks, const Machine& machine) {
  const HostNumbers numbers = number_hosts(ranks, machine);
  std::vector<Order> hosts(numbers.count);
  for (std::uint32_t i = 0; i < ranks.size(); ++i) hosts[numbers.of_rank[i]].push_back(i);
  return hosts;
}

std::vector<std::vector<Order>> rings_by_host(const std::vector<EndpointId>& ranks, const Machine& machine,
                                              RingOrder order) {
  // Equal hosts have equal cables: the search is done once for each type of host and choice of its devices.
  std::map<std::pair<std::uint32_t, Order>, std::vector<Order>> known;
  std::vector<std::vector<Order>> result;
  for (const Order& positions : positions_by_host(ranks, machine)) {
    const Host& host = machine.hosts[machine.devices[ranks[positions[0]]].host];
    std::vector<EndpointId> devices;
    Order local;
    for (const std::uint32_t position : positions) {
      devices.push_back(ranks[position]);
      local.push_back(ranks[position] - host.first_device);
    }
    const auto [it, fresh] = known.try_emplace({host.type, std::move(local)});
    if (fresh) it->second = rings_among(devices, machine, order);
    std::vector<Order>& rings = result.emplace_back();
    for (const Order& ring : it->second) rings.push_back(renamed(ring, positions));
  }
  return result;
}

namespace {

/// The ways of ranks to other hosts, by position.
struct WaysOut {
  std::vector<std::uint32_t> nic;       ///< number of its NIC among those that its host's ranks use
  std::vector<double> out_Bps, in_Bps;  ///< of the narrowest link on the way there and back
};

/// @return the number of NICs that the host's ranks use
std::uint32_t add_ways(const Order& host, EndpointId elsewhere, const std::vector<EndpointId>& ranks,
                       const Machine& machine, WaysOut& ways) {
  std::map<LinkId, std::uint32_t> numbers;
  Route route;
  for (const std::uint32_t position : host) {
    ways.in_Bps[position] = narrowest_Bps(machine, elsewhere, ranks[position], route);
    ways.out_Bps[position] = narrowest_Bps(machine, ranks[position], elsewhere, route);
    const auto nic = std::find_if(route.links.begin(), route.links.end(),
                                  [&](LinkId link) { return machine.links[link].kind == LinkKind::nic; });
    const LinkId link = nic == route.links.end() ? std::numeric_limits<LinkId>::max() : *nic;
    const auto number = static_cast<std::uint32_t>(numbers.size());
    ways.nic[position] = numbers.emplace(link, number).first->second;
  }
  return static_cast<std::uint32_t>(numbers.size());
}

/// A host's chains in `channels` rings over several hosts: its own rings in turn, each cut open where the
/// fewest rings before it enter and leave by the same NICs; among such cuts between two NICs (then the next
/// ring finds those of the others free), and among these where the ways are widest.
std::vector<Order> cut_open(const std::vector<Order>& rings, const WaysOut& ways, std::uint32_t channels) {
  std::map<std::uint32_t, int> entered, left;  // by NIC
  std::vector<Order> chains;
  for (std::uint32_t c = 0; c < channels; ++c) {
    Order chain = rings[c % rings.size()];
    const auto value = [&](std::size_t first) {
      const std::uint32_t enters = chain[first], leaves = chain[(first + chain.size() - 1) % chain.size()];
      return std::tuple{-entered[ways.nic[enters]] - left[ways.nic[leaves]],
                        ways.nic[enters] != ways.nic[leaves],
                        std::min(ways.in_Bps[enters], ways.out_Bps[leaves])};
    };
    std::size_t best = 0;
    for (std::size_t first = 1; first < chain.size(); ++first)
      if (value(first) > value(best)) best = first;
    std::rotate(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(best), chain.end());
    ++entered[ways.nic[chain.front()]], ++left[ways.nic[chain.back()]];
    chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace

std::vector<std::vector<Order>> channels_by_host(const std::vector<EndpointId>& ranks, const Machine& machine,
                                                 RingOrder order) {
  std::vector<std::vector<Order>> hosts = rings_by_host(ranks, machine, order);
  std::uint32_t channels = 1;
  WaysOut ways{Order(ranks.size()), std::vector<double>(ranks.size()), std::vector<double>(ranks.size())};
  const bool one_alone = std::ranges::any_of(hosts, [](const auto& rings) { return rings[0].size() == 1; });
  if (hosts.size() > 1 && !one_alone) {  // a rank that is alone on its host has one NIC
    channels = std::numeric_limits<std::uint32_t>::max();
    for (const std::vector<Order>& rings : hosts) {
      const EndpointId elsewhere = ranks[hosts[&rings == &hosts[0] ? 1 : 0][0][0]];
      channels = std::min(channels, add_ways(rings[0], elsewhere, ranks, machine, ways));
    }
  }
  for (std::vector<Order>& rings : hosts) {
    if (channels > 1)
      rings = cut_open(rings, ways, channels);
    else
      rings.resize(1);  // cut open by rings_among
  }
  return hosts;
}

std::vector<Order> find_rings(const std::vector<EndpointId>& ranks, const Machine& machine, RingOrder order) {
  const std::uint32_t host_count = number_hosts(ranks, machine).count;
  if (host_count == 1) return rings_by_host(ranks, machine, order)[0];
  if (host_count == ranks.size()) {
    Order in_order(ranks.size());
    std::iota(in_order.begin(), in_order.end(), 0u);
    return {std::move(in_order)};
  }
  const std::vector<std::vector<Order>> hosts = channels_by_host(ranks, machine, order);
  std::vector<Order> rings(hosts[0].size());
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (std::size_t c = 0; c < rings.size(); ++c) {
      const Order& chain = hosts[h][c];
      // Forwards through one host and backwards through the next: what leaves by a NIC comes in by the NIC of
      // the same number, so that rings stay on their rails.
      if (h % 2 == 0 || rings.size() == 1)
        rings[c].insert(rings[c].end(), chain.begin(), chain.end());
      else
        rings[c].insert(rings[c].end(), chain.rbegin(), chain.rend());
    }
  return rings;
}

}  // namespace convoy::collectives
