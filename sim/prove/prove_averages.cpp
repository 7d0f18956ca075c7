// SPDX-License-Identifier: MIT
#include "sim/prove/prove_averages.h"

#include <fmt/format.h>

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

/// Whether there is a way from the first to every other, and back.
bool reaches_all(const std::vector<std::vector<std::uint32_t>>& to) {
  for (const bool backward : {false, true}) {
    std::vector<std::vector<std::uint32_t>> next(to.size());
    for (std::uint32_t from = 0; from < to.size(); ++from)
      for (const std::uint32_t other : to[from])
        backward ? next[other].push_back(from) : next[from].push_back(other);
    std::vector<bool> known(to.size(), false);
    std::vector<std::uint32_t> open{0};
    known[0] = true;
    std::size_t count = 0;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      ++count;
      for (const std::uint32_t other : next[at])
        if (!known[other]) known[other] = true, open.push_back(other);
    }
    if (count < to.size()) return false;
  }
  return true;
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
                     const std::vector<EndpointId>& members) {
  std::vector<std::uint32_t> position(machine.endpoint_count(), 0);
  for (std::uint32_t i = 0; i < members.size(); ++i) position[members[i]] = i;
  std::vector<std::vector<std::uint32_t>> all(members.size());
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
    std::vector<std::size_t> sent(group.size(), 0), received(group.size(), 0), told(group.size(), 0);
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t other, double fraction) {
        if (std::abs(fraction - 1) > 1e-9 || round.repeat != 1)
          throw Refuted(fmt::format("'{}': {} sends {} of the parameters", of.name,
                                    machine.endpoint_name(group[from]), fraction * round.repeat));
        all[position[group[from]]].push_back(position[group[other]]);
        if (from / together == other / together && together > 1) {
          if (from % together != 0 && told[from] == 0)
            throw Refuted(fmt::format("'{}': {} passes on what it has not got yet", of.name,
                                      machine.endpoint_name(group[from])));
          // What the first has passed on is the sum of all that comes to it.
          if (from % together == 0) told[from] = 1;
          ++told[other];
          // They sum their gradients: what one has, the others have in the next step.
          all[position[group[other]]].push_back(position[group[from]]);
          return;
        }
        if (from % together != 0 || other % together != 0 || told[other] != 0)
          throw Refuted(fmt::format("'{}': {} sends to {}, which passes on nothing more", of.name,
                                    machine.endpoint_name(group[from]), machine.endpoint_name(group[other])));
        ++sent[from], ++received[other];
      });
    for (std::size_t i = 0; i < group.size(); ++i)
      if (i % together != 0 && told[i] != 1)
        throw Refuted(fmt::format("'{}': {} gets what its first device has {} times", of.name,
                                  machine.endpoint_name(group[i]), told[i]));
    for (std::size_t i = 0; i < group.size(); i += together)
      if (sent[i] != received[i] || sent[i] != sent[0] || sent[i] == 0)
        throw Refuted(fmt::format(
            "'{}': {} sends {} messages and gets {}, and {} sends {}: the mean of all parameters is not kept",
            of.name, machine.endpoint_name(group[i]), sent[i], received[i], machine.endpoint_name(group[0]),
            sent[0]));
  }
  if (!members.empty() && !reaches_all(all))
    throw Refuted("parameters of some devices never reach some others");
}

}  // namespace convoy::prove
