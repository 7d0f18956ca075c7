// SPDX-License-Identifier: MIT
#include "sim/prove/prove_averages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/prove/happens_before.h"

namespace convoy::inline prove {
namespace {

std::size_t count_before(const std::vector<AverageUse::At>& events, const AverageUse::At& event) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(),
                    [&](const AverageUse::At& other) { return other.number < event.number; }));
}

void check_unchanged(const AverageUse& use, const AverageUse::Message& message) {
  for (const auto* events : {&use.updates, &use.means, &use.slows})
    for (const AverageUse::At& event : *events)
      if (event.place >= message.begins && event.place < message.ends)
        throw Refuted(
            fmt::format("{}: parameters may change while '{}' is under way", use.role, message.name));
}

/// How many places on those are to whom each of `count` sends over a period, by step, each list ascending.
std::vector<std::vector<std::uint32_t>> places_on(const GossipNeighbours& of, std::uint32_t count) {
  if (of.asynchronous) return {{count - 1}};  // the answer to the one before
  std::vector<std::uint32_t> all{1};
  if (of.graph == GossipNeighbours::Graph::ring) {
    if (count > 2) all.push_back(count - 1);
    return {all};
  }
  while (all.back() < count - all.back()) all.push_back(2 * all.back());
  if (of.graph == GossipNeighbours::Graph::exponential) return {all};
  std::vector<std::vector<std::uint32_t>> one_by_one;
  for (const std::uint32_t places : all) one_by_one.push_back({places});
  return one_by_one;
}

/// Members that are together are the devices of one host.
void check_hosts(const Machine& machine, const std::string& name, const std::vector<EndpointId>& group,
                 std::uint32_t together) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto host = machine.devices[group[i]].host;
    const auto devices = static_cast<std::uint32_t>(std::count_if(
        group.begin(), group.end(), [&](EndpointId e) { return machine.devices[e].host == host; }));
    if (devices != together || machine.devices[group[i - i % together]].host != host)
      throw Refuted(fmt::format("'{}': {} is in a host with {} devices, and {} are together", name,
                                machine.endpoint_name(group[i]), devices, together));
  }
}

/// Who sends whom what part of a communication's bytes, in all.
std::map<std::pair<EndpointId, EndpointId>, double> messages_of(const Plan& plan, CommId comm) {
  std::map<std::pair<EndpointId, EndpointId>, double> messages;
  const Pattern& pattern = plan.patterns[plan.communications[comm].pattern];
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        messages[{group[from], group[to]}] += fraction * round.repeat;
      });
  return messages;
}

}  // namespace

void check_request(const Plan& plan, const Machine& machine, CommId request, CommId answer) {
  const auto asked = messages_of(plan, request), answered = messages_of(plan, answer);
  const std::string& name = plan.communications[request].name;
  for (const auto& [pair, fraction] : asked) {
    if (std::abs(fraction - 1) > 1e-9)
      throw Refuted(fmt::format("'{}': {} sends {} {} of the parameters", name,
                                machine.endpoint_name(pair.first), machine.endpoint_name(pair.second),
                                fraction));
    if (!answered.contains({pair.second, pair.first}))
      throw Refuted(fmt::format("'{}': {} asks {}, which does not answer", name,
                                machine.endpoint_name(pair.first), machine.endpoint_name(pair.second)));
  }
  for (const auto& [pair, fraction] : answered)
    if (!asked.contains({pair.second, pair.first}))
      throw Refuted(fmt::format("'{}': {} does not ask {}, which answers", name,
                                machine.endpoint_name(pair.second), machine.endpoint_name(pair.first)));
}

void check_average(const AverageUse& use) {
  const std::size_t times = use.messages.size();
  if (use.means.size() != times || use.slows.size() != (use.is_slow ? times : 0))
    throw Refuted(fmt::format("{}: parameters are sent {} times, and averaged {} times", use.role, times,
                              use.means.size()));
  if (use.with_all && times != 1)
    throw Refuted(fmt::format("{}: parameters are averaged {} times", use.role, times));
  for (std::size_t k = 0; k < times; ++k) {
    const AverageUse::Message& message = use.messages[k];
    check_unchanged(use, message);
    if (use.means[k].place < message.ends)
      throw Refuted(fmt::format("{}: their average does not wait for '{}'", use.role, message.name));
    if (!use.slows.empty() && use.slows[k].number < use.means[k].number)
      throw Refuted(
          fmt::format("{}: slow momentum comes before the average of '{}'", use.role, message.name));
    if (!use.with_all) continue;
    for (const AverageUse::At& update : use.updates)
      if (update.place >= message.begins)
        throw Refuted(fmt::format("{}: '{}' does not wait for an update", use.role, message.name));
  }
  if (use.with_all || use.updates.empty()) return;
  const std::size_t first = count_before(use.means, use.updates.front());  // 1: before each update
  for (std::size_t k = 0; k < use.updates.size(); ++k)
    if (first > 1 || count_before(use.means, use.updates[k]) != k + first)
      throw Refuted(fmt::format("{}: there is not one average for each update", use.role));
  if (times != use.updates.size())
    throw Refuted(fmt::format("{}: {} averages for {} updates", use.role, times, use.updates.size()));
}

void check_exchanges(const Plan& plan, const Machine& machine, const std::vector<CommId>& comms,
                     const std::vector<EndpointId>& members, const GossipNeighbours& neighbours) {
  std::vector<std::vector<std::uint32_t>> found;  // by step: how many places on messages go
  std::uint32_t units = 0;
  for (const CommId comm : comms) {
    const Communication& of = plan.communications[comm];
    const Pattern& pattern = plan.patterns[of.pattern];
    if (pattern.groups.size() != 1 || pattern.groups.front().size() != members.size() ||
        !std::is_permutation(members.begin(), members.end(), pattern.groups.front().begin()))
      throw Refuted(
          fmt::format("'{}' is not among the devices that have replicas of its parameters", of.name));
    const std::vector<EndpointId>& group = pattern.groups.front();
    const std::uint32_t together = plan.meaning->communications[of.meaning].together;
    if (together == 0 || group.size() % together != 0)
      throw Refuted(fmt::format("'{}': {} devices are not in groups of {}", of.name, group.size(), together));
    if (neighbours.are_hosts)
      check_hosts(machine, of.name, group, together);
    else if (together != 1)
      throw Refuted(fmt::format("'{}': {} devices are one neighbour", of.name, together));
    units = static_cast<std::uint32_t>(group.size()) / together;
    std::vector<std::vector<std::uint32_t>> sent(units);
    std::vector<std::size_t> told(group.size(), 0);
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t other, double fraction) {
        if (std::abs(fraction - 1) > 1e-9 || round.repeat != 1)
          throw Refuted(fmt::format("'{}': {} sends {} of the parameters", of.name,
                                    machine.endpoint_name(group[from]), fraction * round.repeat));
        if (from / together == other / together && together > 1) {
          if (from % together != 0 && told[from] == 0)
            throw Refuted(fmt::format("'{}': {} passes on what it has not got yet", of.name,
                                      machine.endpoint_name(group[from])));
          // What the first has passed on is the sum of all that comes to it.
          if (from % together == 0) told[from] = 1;
          ++told[other];
          return;
        }
        if (from % together != 0 || other % together != 0 || told[other] != 0)
          throw Refuted(fmt::format("'{}': {} sends to {}, which passes on nothing more", of.name,
                                    machine.endpoint_name(group[from]), machine.endpoint_name(group[other])));
        sent[from / together].push_back((other / together + units - from / together) % units);
      });
    for (std::size_t i = 0; i < group.size(); ++i)
      if (i % together != 0 && told[i] != 1)
        throw Refuted(fmt::format("'{}': {} gets what its first device has {} times", of.name,
                                  machine.endpoint_name(group[i]), told[i]));
    for (std::vector<std::uint32_t>& places : sent) std::sort(places.begin(), places.end());
    for (std::uint32_t unit = 1; unit < units; ++unit)
      if (sent[unit] != sent[0])
        throw Refuted(fmt::format("'{}': neighbours of {} are not as many places on as those of {}", of.name,
                                  machine.endpoint_name(group[std::size_t{unit} * together]),
                                  machine.endpoint_name(group[0])));
    found.push_back(std::move(sent[0]));
  }
  std::sort(found.begin(), found.end());  // with one peer, in any order
  if (const auto named = places_on(neighbours, units); found != named)
    throw Refuted(
        fmt::format("parameters go to those {} places on, and the experiment names those {} places on",
                    fmt::join(found, ", then "), fmt::join(named, ", then ")));
}

}  // namespace convoy::prove
