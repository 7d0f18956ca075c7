// SPDX-License-Identifier: MIT
#include "sim/prove/server_flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/prove/happens_before.h"

namespace convoy::inline prove {
namespace {

constexpr double least = 1e-9;
constexpr double unknown_share = -1;

bool are_equal(double a, double b) { return std::abs(a - b) <= least * (1 + std::abs(b)); }

std::vector<std::vector<EndpointId>> sorted_groups(const Plan& plan, const std::vector<CommId>& comms) {
  std::vector<std::vector<EndpointId>> all;
  for (const CommId comm : comms)
    for (std::vector<EndpointId> group : plan.patterns[plan.communications[comm].pattern].groups) {
      std::sort(group.begin(), group.end());
      all.push_back(std::move(group));
    }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

ServerFlows::ServerFlows(const Plan& plan, const Machine& machine, RoundRules& rounds)
    : plan_(plan),
      machine_(machine),
      rounds_(rounds),
      role_of_(machine.endpoint_count(), 0),
      ends_(plan.patterns.size()) {
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) role_of_[e] = r;
}

const ServerFlows::Ends& ServerFlows::ends_of(std::uint32_t pattern) {
  if (ends_[pattern]) return *ends_[pattern];
  Ends& ends = ends_[pattern].emplace();
  for (const std::vector<EndpointId>& group : plan_.patterns[pattern].groups)
    for (const Round& round : plan_.patterns[pattern].rounds) {
      for (const auto& [from, to] : round.pairs) {
        ends.senders.insert(role_of_[group[from]]);
        ends.receivers.insert(role_of_[group[to]]);
      }
      if (!round.all_to_all || round.message_count() == 0) continue;
      for (const AllToAll::Part& part : round.all_to_all->senders)
        ends.senders.insert(role_of_[group[part.member]]);
      for (const AllToAll::Part& part : round.all_to_all->receivers)
        ends.receivers.insert(role_of_[group[part.member]]);
    }
  return ends;
}

void ServerFlows::check(const BucketWays& ways, const std::vector<EndpointId>& servers,
                        const std::string& name) {
  constexpr std::uint32_t next = 0xffffffff;
  std::vector<std::uint32_t> key;
  const auto add = [&](const std::vector<CommId>& comms) {
    for (const CommId comm : comms) key.push_back(pattern_of(comm));
    key.push_back(next);
  };
  add({*ways.push, *ways.pull});
  for (const auto* comms : {&ways.collects, &ways.hand_outs, &ways.scatters, &ways.gathers}) add(*comms);
  key.insert(key.end(), servers.begin(), servers.end());
  if (!known_.insert(std::move(key)).second) return;
  if (servers.empty()) throw Refuted(fmt::format("nobody updates {}", name));
  const Holders holders = collected(ways);
  check_rings(ways);
  check_hand_outs(ways, holders);
  std::vector<double> shares(machine_.endpoint_count(), unknown_share);
  check_way(*ways.push, false, holders, servers, shares);
  std::vector<EndpointId> unknown;
  double known = 0;
  for (const EndpointId s : servers)
    if (shares[s] == unknown_share)
      unknown.push_back(s);
    else
      known += shares[s];
  // A server to which nobody else sends has what is left of its own node's gradients.
  if (unknown.size() == 1) shares[unknown.front()] = 1 - std::exchange(known, 1);
  if (unknown.size() > 1 || !are_equal(known, 1))
    throw Refuted(fmt::format("the servers of {} get {} of every worker's gradients", name, known));
  check_way(*ways.pull, true, holders, servers, shares);
}

const Round& ServerFlows::round_of(CommId comm) const { return plan_.patterns[pattern_of(comm)].rounds[0]; }

ServerFlows::Holders ServerFlows::collected(const BucketWays& ways) const {
  Holders holders{std::vector<double>(machine_.endpoint_count(), 0), {}};
  std::vector<EndpointId> workers;
  for (EndpointId e = 0; e < machine_.endpoint_count(); ++e) holders.with.push_back(e);
  for (const Role& role : plan_.roles)
    for (const EndpointId e : role.members)
      if (e < machine_.devices.size()) workers.push_back(e), holders.part[e] = 1;
  std::set<EndpointId> collectors;
  for (const CommId comm : ways.collects)
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern_of(comm)].groups)
      round_of(comm).for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        const EndpointId sender = group[from], collector = group[to];
        if (!are_equal(fraction, 1))
          throw Refuted(fmt::format("{} sends {} of its gradients to {}, which adds up whole ones",
                                    name_of_endpoint(sender), fraction, name_of_endpoint(collector)));
        if (holders.with[sender] != sender || holders.part[sender] != 1)
          throw Refuted(fmt::format("{} sends its gradients to be added up twice", name_of_endpoint(sender)));
        holders.with[sender] = collector;
        holders.part[sender] = 0;
        if (collector >= machine_.devices.size()) holders.part[collector] = 1;
        collectors.insert(collector);
      });
  for (const CommId comm : ways.scatters)
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern_of(comm)].groups)
      for (const EndpointId e : group) {
        if (holders.part[e] != 1 || collectors.contains(e))
          throw Refuted(fmt::format("{} sums its gradients in two ways", name_of_endpoint(e)));
        holders.part[e] = 1.0 / static_cast<double>(group.size());
      }
  for (const EndpointId e : workers)
    if (holders.part[holders.with[e]] == 0)
      throw Refuted(fmt::format("{} sends its gradients to {}, which hands its own to somebody else",
                                name_of_endpoint(e), name_of_endpoint(holders.with[e])));
  return holders;
}

void ServerFlows::check_rings(const BucketWays& ways) const {
  for (const auto* comms : {&ways.scatters, &ways.gathers})
    for (const CommId comm : *comms) rounds_.check_groups(comm);
  if (sorted_groups(plan_, ways.scatters) != sorted_groups(plan_, ways.gathers))
    throw Refuted("parameters are gathered by other devices than those that share their gradients");
}

/// Whoever has sent its gradients gets parameters from who has collected them.
void ServerFlows::check_hand_outs(const BucketWays& ways, const Holders& holders) const {
  std::set<EndpointId> done;
  for (const CommId comm : ways.hand_outs)
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern_of(comm)].groups)
      round_of(comm).for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        const EndpointId collector = group[from], receiver = group[to];
        if (holders.with[receiver] != collector || !are_equal(fraction, 1))
          throw Refuted(fmt::format("{} hands {} of the parameters to {}, whose gradients it has not",
                                    name_of_endpoint(collector), fraction, name_of_endpoint(receiver)));
        if (!done.insert(receiver).second)
          throw Refuted(fmt::format("{} gets parameters twice", name_of_endpoint(receiver)));
      });
  for (EndpointId e = 0; e < holders.with.size(); ++e)
    if (holders.with[e] != e && !done.contains(e))
      throw Refuted(fmt::format("{} gets no parameters from {}", name_of_endpoint(e),
                                name_of_endpoint(holders.with[e])));
}

/// @param shares by endpoint, of the bucket, that a server has; those that are unknown are found
void ServerFlows::check_way(CommId comm, bool back, const Holders& holders,
                            const std::vector<EndpointId>& servers, std::vector<double>& shares) const {
  const Pattern& pattern = plan_.patterns[pattern_of(comm)];
  const Round& round = round_of(comm);
  if (!round.all_to_all) {
    check_pairs(comm, back, holders, servers, shares);
    return;
  }
  const std::string& name = plan_.communications[comm].name;
  if (pattern.groups.size() != 1)
    throw NotCovered(fmt::format("'{}' is an all-to-all of {} groups", name, pattern.groups.size()));
  const std::vector<EndpointId>& group = pattern.groups[0];
  const auto& [from, to] = *round.all_to_all;
  const std::vector<AllToAll::Part>&own = back ? to : from, &of_servers = back ? from : to;
  double factor = 0;
  std::vector<char> found_own(holders.part.size(), 0);
  for (const AllToAll::Part& part : own) {
    const EndpointId e = group[part.member];
    if (factor == 0 && holders.part[e] > 0) factor = part.share / holders.part[e];
    if (holders.part[e] == 0 || !are_equal(part.share, factor * holders.part[e]))
      throw Refuted(fmt::format("{}: '{}' carries {} of a bucket of which it has {}", name_of_endpoint(e),
                                name, part.share, holders.part[e]));
    found_own[e] = 1;
  }
  for (EndpointId e = 0; e < holders.part.size(); ++e)
    if (holders.part[e] > 0 && !found_own[e])
      throw Refuted(fmt::format("{} has no message of '{}'", name_of_endpoint(e), name));
  std::size_t found = 0;
  for (const AllToAll::Part& part : of_servers) {
    const EndpointId s = group[part.member];
    if (!std::binary_search(servers.begin(), servers.end(), s))
      throw Refuted(
          fmt::format("{} is a server of '{}', and updates nothing of it", name_of_endpoint(s), name));
    if (shares[s] == unknown_share) shares[s] = factor * part.share;
    if (!are_equal(factor * part.share, shares[s]))
      throw Refuted(fmt::format("{}: '{}' carries {} of its parameters, of which it has {}",
                                name_of_endpoint(s), name, factor * part.share, shares[s]));
    ++found;
  }
  if (found != servers.size())
    throw Refuted(
        fmt::format("{} servers have parts of '{}', which has messages of {}", servers.size(), name, found));
}

void ServerFlows::check_pairs(CommId comm, bool back, const Holders& holders,
                              const std::vector<EndpointId>& servers, std::vector<double>& shares) const {
  const std::string& name = plan_.communications[comm].name;
  std::set<std::pair<EndpointId, EndpointId>> done;  // who has a part of the sum, and a server
  for (const std::vector<EndpointId>& group : plan_.patterns[pattern_of(comm)].groups)
    round_of(comm).for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      const EndpointId e = group[back ? to : from], s = group[back ? from : to];
      if (!std::binary_search(servers.begin(), servers.end(), s))
        throw Refuted(
            fmt::format("{} is a server of '{}', and updates nothing of it", name_of_endpoint(s), name));
      if (holders.part[e] == 0)
        throw Refuted(fmt::format("{} has a message of '{}', and others have its gradients",
                                  name_of_endpoint(e), name));
      if (!done.emplace(e, s).second)
        throw Refuted(fmt::format("'{}' goes from {} to {} twice", name, name_of_endpoint(group[from]),
                                  name_of_endpoint(group[to])));
      if (shares[s] == unknown_share) shares[s] = fraction / holders.part[e];
      if (!are_equal(fraction, shares[s] * holders.part[e]))
        throw Refuted(fmt::format("'{}' carries {} of the bucket from {} to {}, and should carry {}", name,
                                  fraction, name_of_endpoint(group[from]), name_of_endpoint(group[to]),
                                  shares[s] * holders.part[e]));
    });
  for (EndpointId e = 0; e < holders.part.size(); ++e)
    for (const EndpointId s : servers)
      if (holders.part[e] > 0 && e != s && !done.contains({e, s}))
        throw Refuted(fmt::format("'{}' has no message from {} to {}", name, name_of_endpoint(back ? s : e),
                                  name_of_endpoint(back ? e : s)));
}

}  // namespace convoy::prove
