// SPDX-License-Identifier: MIT
#include "sim/planning/sum_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "sim/collectives/table.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/strategy.h"

namespace convoy::inline planning {
namespace {

/// The links of a kind that messages cross, and how many of them each message crosses at least.
struct Crossed {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::vector<LinkId> links;
};
constexpr std::size_t link_kinds = static_cast<std::size_t>(LinkKind::network) + 1;

/// Whether a switch joins all hosts, so that their links are the same however many there are.
bool joined_by_switch(const Machine& machine) {
  std::vector<LinkId> out, in;
  for (EndpointId device = 0; device < machine.devices.size(); ++device)
    if (!machine.router->halves(device, out, in)) return false;
  return true;
}

/// @param across messages between hosts only; else between all devices
double least_s_a_byte(const Machine& machine, bool across) {
  std::array<Crossed, link_kinds> kinds;
  std::vector<bool> known(machine.links.size());
  Route way;
  for (EndpointId from = 0; from < machine.devices.size(); ++from)
    for (EndpointId to = 0; to < machine.devices.size(); ++to) {
      if (from == to || (across && machine.host_of(from) == machine.host_of(to))) continue;
      machine.router->route(from, to, way);
      std::array<std::size_t, link_kinds> crossed{};
      for (const LinkId link : way.links) {
        const auto kind = static_cast<std::size_t>(machine.links[link].kind);
        ++crossed[kind];
        if (!known[link]) kinds[kind].links.push_back(link);
        known[link] = true;
      }
      for (std::size_t kind = 0; kind < link_kinds; ++kind)
        kinds[kind].least = std::min(kinds[kind].least, crossed[kind]);
    }
  double longest_s = 0;
  for (const Crossed& kind : kinds) {
    if (kind.links.empty()) continue;
    double capacity_Bps = 0;  // of a host
    bool of_hosts = true;
    for (const LinkId link : kind.links) {
      capacity_Bps += machine.links[link].bandwidth_Bps / static_cast<double>(machine.hosts.size());
      of_hosts = of_hosts && machine.links[link].host != Link::no_host;
    }
    if (of_hosts || machine.hosts.size() == 1)
      longest_s = std::max(longest_s, static_cast<double>(kind.least) / capacity_Bps);
  }
  return longest_s;
}

bool adds_on_devices(const SumAlgorithm& algorithm) {
  const auto on_devices = [](AllReduceAlgorithm row) { return row < AllReduceAlgorithm::nccl; };
  if (algorithm.schedule || !algorithm.candidates.empty()) return false;
  if (!algorithm.is_auto()) return on_devices(algorithm.row);
  const std::vector<CollectiveAlgorithm>& rows = collective_table();
  return std::all_of(rows.begin(), rows.end(), [&](const CollectiveAlgorithm& row) {
    return row.auto_ranks == 0 || on_devices(row.id);
  });
}

}  // namespace

HostWays ways_of(const Machine& one, const Machine* two) {
  HostWays ways;
  ways.alone_s_per_byte = least_s_a_byte(one, false);
  ways.alone_start_s = one.collective_overhead_s;
  ways.copies = !one.transport.ideal();
  if (!two) return ways;
  ways.several_start_s = two->collective_overhead_s;
  if (!joined_by_switch(*two)) return ways;
  ways.any_s_per_byte = least_s_a_byte(*two, false);
  ways.between_s_per_byte = least_s_a_byte(*two, true);
  return ways;
}

double least_sum_s(const HostWays& ways, double bytes, double devices, double hosts) {
  const auto sent = [&](double parts) { return 2 * (parts - 1) * bytes; };
  if (hosts <= 1) return sent(devices) * ways.alone_s_per_byte;
  return std::max(sent(devices) * ways.any_s_per_byte, sent(hosts) * ways.between_s_per_byte) / hosts;
}

bool sums_on_devices(const YamlNode& strategy) {
  constexpr std::array<std::string_view, 8> known{"kind",   "sync",  "algorithm", "overlap",
                                                  "bucket", "rings", "fidelity",  "micro_batches"};
  for (const auto& [key, value] : strategy.entries)
    if (std::find(known.begin(), known.end(), key) == known.end()) return false;
  const auto is = [&](std::string_view key, std::string_view name) {
    const YamlNode* value = strategy.find(key);
    return value && value->scalar == name;
  };
  if (!is("kind", "data_parallel") || !is("sync", "all_reduce")) return false;
  const std::unique_ptr<const Strategy> read = read_strategy(strategy);
  const GradientSync* sums = read->sums();
  return sums && sums->zero == 0 && sums->compression.kind == Compression::Kind::none &&
         adds_on_devices(sums->algorithm);
}

}  // namespace convoy::planning
