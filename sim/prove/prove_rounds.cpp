// SPDX-License-Identifier: MIT
#include "sim/prove/prove_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/prove/happens_before.h"

namespace convoy::inline prove {
namespace {

constexpr std::uint32_t no_role = 0xffffffff;
constexpr double rounding = 1e-9;
/// What everybody knows of everybody is a bit each.
constexpr std::size_t most_known = 2048;

/// Whether the first messages of a round go around one ring through all `size` members.
bool has_ring(const Round& round, std::size_t size) {
  if (round.all_to_all || round.pairs.size() < size) return false;
  std::vector<std::uint32_t> next(size, no_role);
  for (std::size_t k = 0; k < size; ++k)
    if (round.fraction(k) > 0) next[round.pairs[k].first] = round.pairs[k].second;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (next[at] == no_role) return false;
    at = std::exchange(next[at], no_role);
  }
  return at == 0;
}

/// Who has heard of whom, by rows of bits.
class Known {
 public:
  explicit Known(std::size_t size) : size_(size), words_((size + 63) / 64), bits_(size * words_, 0) {
    for (std::size_t i = 0; i < size; ++i) bits_[i * words_ + i / 64] |= std::uint64_t{1} << (i % 64);
  }
  /// @param in_turn messages of the round may follow one another, in any order
  /// @return whether anybody has heard of somebody new
  bool send(const Round& round, bool in_turn) {
    const std::vector<std::uint64_t> before = in_turn ? std::vector<std::uint64_t>{} : bits_;
    const std::vector<std::uint64_t>& source = in_turn ? bits_ : before;
    bool news = false;
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      if (fraction <= 0) return;
      for (std::size_t w = 0; w < words_; ++w) {
        std::uint64_t& word = bits_[to * words_ + w];
        const std::uint64_t with = word | source[from * words_ + w];
        news = news || with != word;
        word = with;
      }
    });
    return news;
  }
  /// @return the first who has to hear of somebody and has not, and of whom; {size, size}: there is none
  template <class Matters>
  std::pair<std::size_t, std::size_t> missing(Matters matters) const {
    for (std::size_t i = 0; i < size_; ++i)
      for (std::size_t j = 0; j < size_; ++j)
        if (!(bits_[i * words_ + j / 64] >> (j % 64) & 1) && matters(i, j)) return {i, j};
    return {size_, size_};
  }

 private:
  std::size_t size_, words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace

RoundRules::RoundRules(const Plan& plan, const Machine& machine)
    : plan_(plan),
      machine_(machine),
      role_of_(machine.endpoint_count(), no_role),
      users_(plan.communications.size()) {
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
    for (const EndpointId e : plan.roles[r].members) role_of_[e] = r;
    for (const Task& task : plan.roles[r].program)
      if (task.kind != Task::Kind::compute) users_[task.comm].emplace_back(r, task.kind);
  }
}

const RoundRules::Pairs& RoundRules::pairs_of(std::uint32_t of) {
  const auto [it, fresh] = pairs_.try_emplace(of);
  if (!fresh) return it->second;
  const Pattern& pattern = plan_.patterns[of];
  std::set<EndpointId> senders, receivers;
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        const EndpointId sender = group[from], receiver = group[to];
        if (std::abs(fraction - 1) > rounding)
          throw Refuted(fmt::format("{} sends {} of the bytes of what {} needs whole",
                                    machine_.endpoint_name(sender), fraction,
                                    machine_.endpoint_name(receiver)));
        if (plan_.meaning->lanes[sender] != plan_.meaning->lanes[receiver])
          throw Refuted(fmt::format("{} sends {} results of other images than it has",
                                    machine_.endpoint_name(sender), machine_.endpoint_name(receiver)));
        if (!senders.insert(sender).second)
          throw Refuted(fmt::format("{} sends the same twice", machine_.endpoint_name(sender)));
        if (!receivers.insert(receiver).second)
          throw Refuted(fmt::format("{} receives the same twice", machine_.endpoint_name(receiver)));
        ++it->second.senders[role_of_[sender]];
        ++it->second.receivers[role_of_[receiver]];
      });
  return it->second;
}

void RoundRules::check_results(CommId comm) {
  const Communication& of = plan_.communications[comm];
  const Pairs& pairs = pairs_of(of.pattern);
  const auto check = [&](const Parts& parts, Task::Kind kind, const char* does) {
    Parts wanted;
    for (const auto& [role, used_as] : users_[comm])
      if (used_as == kind) wanted[role] = static_cast<std::uint32_t>(plan_.roles[role].members.size());
    for (const auto& [role, members] : parts)
      if (!wanted.contains(role))
        throw Refuted(
            fmt::format("{}: no task {} '{}'", name_of(plan_.roles[role], machine_), does, of.name));
    for (const auto& [role, members] : wanted)
      if (const auto found = parts.find(role); found == parts.end() || found->second != members)
        throw Refuted(fmt::format("{}: {} '{}', which has {} messages for {} devices",
                                  name_of(plan_.roles[role], machine_), does, of.name,
                                  found == parts.end() ? 0 : found->second, members));
  };
  check(pairs.senders, Task::Kind::send, "sends");
  check(pairs.receivers, Task::Kind::receive, "receives");
}

const std::vector<EndpointId>& RoundRules::group_of(const Pattern& pattern, EndpointId member) const {
  for (const std::vector<EndpointId>& group : pattern.groups)
    if (std::find(group.begin(), group.end(), member) != group.end()) return group;
  throw Refuted(fmt::format("{} is in a collective that no message reaches", machine_.endpoint_name(member)));
}

const std::vector<std::vector<EndpointId>>& RoundRules::check_rounds_of(CommId comm) {
  const Communication& of = plan_.communications[comm];
  const Pattern& pattern = plan_.patterns[of.pattern];
  const CommMeaning::Kind kind = plan_.meaning->communications[of.meaning].kind;
  check_rounds_once(of, kind);
  return pattern.groups;
}

void RoundRules::check_collective(CommId comm, const std::vector<std::uint32_t>& roles) {
  const Communication& of = plan_.communications[comm];
  const Pattern& pattern = plan_.patterns[of.pattern];
  check_rounds_of(comm);
  if (!groups_.try_emplace({of.pattern, roles}, true).second) return;
  std::size_t members = 0;
  for (const std::uint32_t role : roles) members += plan_.roles[role].members.size();
  const std::vector<EndpointId>& group = group_of(pattern, plan_.roles[roles.front()].members.front());
  for (const EndpointId e : group)
    if (std::find(roles.begin(), roles.end(), role_of_[e]) == roles.end())
      throw Refuted(fmt::format("{} is in '{}' and has no replica of its parameters",
                                machine_.endpoint_name(e), of.name));
  for (const std::uint32_t role : roles)
    for (const EndpointId e : plan_.roles[role].members)
      if (group.size() < members && std::find(group.begin(), group.end(), e) == group.end())
        throw Refuted(fmt::format("{} has a replica of the parameters and is not in '{}'",
                                  machine_.endpoint_name(e), of.name));
}

void RoundRules::check_rounds_once(const Communication& of, CommMeaning::Kind kind) {
  if (rounds_.try_emplace({of.pattern, kind}, true).second)
    check_rounds(plan_.patterns[of.pattern], kind, of.name);
}

void RoundRules::check_shares(CommId comm, CommMeaning::Kind kind, const std::vector<double>& shares) {
  const Communication& of = plan_.communications[comm];
  if (shares_.try_emplace({of.pattern, kind, shares}, true).second)
    check_rounds(plan_.patterns[of.pattern], kind, of.name, shares);
}

void RoundRules::check_groups(CommId comm) {
  const Communication& of = plan_.communications[comm];
  const std::vector<std::vector<EndpointId>>& groups = plan_.patterns[of.pattern].groups;
  for (const std::vector<EndpointId>& group : groups)
    if (group.size() != groups.front().size())
      throw NotCovered(fmt::format("'{}' has groups of {} and of {} devices", of.name, groups.front().size(),
                                   group.size()));
  check_rounds_once(of, plan_.meaning->communications[of.meaning].kind);
}

void RoundRules::check_rounds(const Pattern& pattern, CommMeaning::Kind kind, const std::string& name,
                              const std::vector<double>& shares) const {
  const std::vector<EndpointId>& group = pattern.groups.front();
  const std::size_t size = group.size();
  const auto n = static_cast<double>(size);
  std::vector<double> sent(size, 0), received(size, 0);
  double total = 0;
  bool is_in_switch = true;  // which adds up what comes in and sends the sum to all
  for (const Round& round : pattern.rounds)
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      const double all = round.repeat * fraction;
      is_in_switch = is_in_switch && round.latency_s && std::abs(fraction - (1 + 1 / n)) < rounding;
      sent[from] += all, received[to] += all, total += all;
    });
  const bool sums = kind == CommMeaning::Kind::sum || kind == CommMeaning::Kind::sum_factors ||
                    kind == CommMeaning::Kind::average;
  const bool scatters = kind == CommMeaning::Kind::scatter;
  const double volume = sums ? (is_in_switch ? n + 1 : 2 * (n - 1)) : n - 1;
  if (total < volume - rounding * (1 + volume))
    throw Refuted(fmt::format("'{}': its messages carry {} times its bytes; of {} devices each byte takes {}",
                              name, total, size, volume));
  for (std::size_t i = 0; i < size; ++i) {
    const double share = shares.empty() ? 1 / n : shares[i];
    const double least_sent = sums ? 1 : scatters ? 1 - share : share;
    const double least_received = sums ? 1 : scatters ? share : 1 - share;
    if (sent[i] < least_sent - rounding || received[i] < least_received - rounding)
      throw Refuted(fmt::format(
          "{}: '{}': it sends {} and gets {} of the bytes; at least {} and {} are needed",
          machine_.endpoint_name(group[i]), name, sent[i], received[i], least_sent, least_received));
  }
  if (total > volume + rounding * (1 + volume))
    throw NotCovered(fmt::format(
        "'{}' sends {} times its bytes, and {} are enough: whether it adds anything twice is not followed",
        name, total, volume));
  for (const Round& round : pattern.rounds)
    if (has_ring(round, size) && (round.repeat + 1 >= size || round.latency_s)) return;
  if (size > most_known)
    throw NotCovered(
        fmt::format("'{}': who hears of whom among {} devices is followed around rings only", name, size));
  Known known(size);
  for (const Round& round : pattern.rounds)
    for (std::size_t k = 0; (round.latency_s ? size : round.repeat) > k; ++k)
      if (!known.send(round, round.latency_s.has_value())) break;
  // Who has no share has nothing to send before a gather, and gets nothing after a scatter.
  const auto matters = [&](std::size_t to, std::size_t of) {
    return shares.empty() || sums || shares[scatters ? to : of] > 0;
  };
  if (const auto [to, of] = known.missing(matters); to < size)
    throw Refuted(fmt::format("{}: '{}': nothing of {} ever reaches it", machine_.endpoint_name(group[to]),
                              name, machine_.endpoint_name(group[of])));
}

}  // namespace convoy::prove
