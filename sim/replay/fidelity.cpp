// SPDX-License-Identifier: MIT
#include "sim/replay/fidelity.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "sim/plan/repetition.h"
#include "sim/replay/link_conflicts.h"

namespace convoy::inline replays {
namespace {

/// Whether the flows of a round share links such that all of them get the same rate, and carry the same
/// number of bytes with the same latency: then they end together, and so does everything that follows them.
class EqualRounds {
 public:
  EqualRounds(const Machine& machine, const FlowTable& table)
      : machine_(machine), table_(table), load_(machine.links.size() + table.connections_Bps.size(), 0) {}

  /// For all groups of a pattern together, since they may share links.
  /// @param alike the ranks arrive at the same time; otherwise messages that share a link may not be there
  /// together
  bool operator()(const Pattern& pattern, std::uint32_t first_group, std::uint32_t last_group, bool alike) {
    alike_ = alike;
    if (!std::ranges::all_of(pattern.rounds, takes_all_members(pattern))) return false;
    std::vector<InRound> rounds(pattern.rounds.size());
    for (std::uint32_t g = first_group; g < last_group; ++g) {
      const FlowGroup& group = table_.groups[g];
      for (std::uint32_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f)
        rounds[table_.flows[f].round].flows.push_back(&table_.flows[f]);
    }
    for (const AllToAllFlows& flows : table_.all_to_all)
      if (first_group <= flows.group && flows.group < last_group)
        rounds[flows.round].all_to_all.push_back(&flows);
    return std::all_of(rounds.begin(), rounds.end(), [&](const InRound& round) { return are_equal(round); });
  }

 private:
  struct InRound {
    std::vector<const Flow*> flows;
    std::vector<const AllToAllFlows*> all_to_all;
  };
  /// What a message, or one half of its route, gets and needs.
  struct Lot {
    double share_Bps;
    bool shares;
    double latency_s, fraction;
    std::uint64_t of_peer = 1;  ///< for a half: the number of ends on its side with the same peer
    auto operator<=>(const Lot&) const = default;
  };

  /// Whether every member of a group sends and receives the same number of messages of a round as any other.
  static std::function<bool(const Round&)> takes_all_members(const Pattern& pattern) {
    const std::size_t members = pattern.groups.front().size();
    const bool same_size = std::all_of(pattern.groups.begin(), pattern.groups.end(),
                                       [&](const auto& group) { return group.size() == members; });
    return [members, same_size](const Round& round) {
      std::vector<std::uint64_t> sent(members, 0), got(members, 0);
      for (const auto& [from, to] : round.pairs) ++sent[from], ++got[to];
      if (round.all_to_all) count(*round.all_to_all, sent, got);
      const auto even = [](const std::vector<std::uint64_t>& counts) {
        return std::all_of(counts.begin(), counts.end(),
                           [&](std::uint64_t count) { return count == counts.front(); });
      };
      return same_size && even(sent) && even(got);
    };
  }

  static void count(const AllToAll& all_to_all, std::vector<std::uint64_t>& sent,
                    std::vector<std::uint64_t>& got) {
    std::vector<bool> sends(sent.size(), false);
    for (const AllToAll::Part& part : all_to_all.senders) {
      sent[part.member] += all_to_all.receivers.size();
      sends[part.member] = true;
    }
    for (const AllToAll::Part& part : all_to_all.receivers) {
      got[part.member] += all_to_all.senders.size();
      if (sends[part.member]) --sent[part.member], --got[part.member];
    }
  }

  bool are_equal(const InRound& round) {
    for_each_link(round, [&](LinkId link, std::uint64_t flows) { load_[link] += flows; });
    first_.reset();
    const bool equal =
        std::all_of(round.flows.begin(), round.flows.end(),
                    [&](const Flow* flow) {
                      const FlowPath& path = table_.path(*flow);
                      return is_like_first(lot(table_.route(path), path.latency_s, flow->fraction));
                    }) &&
        std::all_of(round.all_to_all.begin(), round.all_to_all.end(),
                    [&](const AllToAllFlows* flows) { return are_like_first(*flows); });
    for_each_link(round, [&](LinkId link, std::uint64_t) { load_[link] = 0; });
    return equal;
  }

  template <class Visit>
  void for_each_link(const InRound& round, Visit visit) const {
    for (const Flow* flow : round.flows)
      for (const LinkId link : table_.route(*flow)) visit(link, 1);
    for (const AllToAllFlows* flows : round.all_to_all)
      for (const auto* ends : {&flows->senders, &flows->receivers})
        for (const AllToAllFlows::End& end : *ends)
          for (const LinkId link : table_.half(end)) visit(link, end.partners);
  }

  Lot lot(std::span<const LinkId> links, double latency_s, double fraction) const {
    Lot result{std::numeric_limits<double>::infinity(), false, latency_s, fraction};
    for (const LinkId link : links) {
      result.share_Bps = std::min(result.share_Bps,
                                  bandwidth_Bps(machine_, table_, link) / static_cast<double>(load_[link]));
      result.shares = result.shares || load_[link] > 1;
    }
    return result;
  }

  bool is_like_first(const Lot& lot) {
    if (!first_) first_ = lot;
    return lot.share_Bps == first_->share_Bps && (alike_ || !lot.shares) &&
           lot.latency_s == first_->latency_s && lot.fraction == first_->fraction;
  }

  bool are_like_first(const AllToAllFlows& flows) {
    std::vector<Lot> out, in;
    const std::vector<std::uint32_t> out_of = lots(flows.senders, out), in_of = lots(flows.receivers, in);
    return ClassPairs(flows, out_of, in_of).all_of([&](const ClassPairs::Pair& pair) {
      const Lot &from = out[pair.sender_class], &to = in[pair.receiver_class];
      const std::uint64_t on_connection = table_.peers > 0 ? from.of_peer * to.of_peer : 1;
      const double connection_Bps = table_.peer_connection_Bps / static_cast<double>(on_connection);
      return is_like_first({std::min({from.share_Bps, to.share_Bps, connection_Bps}),
                            from.shares || to.shares || on_connection > 1, from.latency_s + to.latency_s,
                            from.fraction * to.fraction});
    });
  }

  /// @return by end: its index in `different`
  std::vector<std::uint32_t> lots(const std::vector<AllToAllFlows::End>& ends,
                                  std::vector<Lot>& different) const {
    std::map<Lot, std::uint32_t> known;
    std::vector<std::uint32_t> result;
    const std::vector<std::uint64_t> of_peer = ends_of_peer(ends, std::vector<std::uint32_t>(ends.size(), 0));
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const AllToAllFlows::End& end = ends[i];
      Lot mine = lot(table_.half(end), end.latency_s, end.share);
      mine.of_peer = of_peer[i];
      const auto [it, fresh] = known.emplace(mine, static_cast<std::uint32_t>(different.size()));
      if (fresh) different.push_back(mine);
      result.push_back(it->second);
    }
    return result;
  }

  const Machine& machine_;
  const FlowTable& table_;
  std::vector<std::uint64_t> load_;  ///< flows by link; all 0 between calls
  std::optional<Lot> first_;         ///< of the current round
  bool alike_ = true;
};

/// Whether all ranks of a pattern run the same program at the same speed.
bool ranks_are_alike(const Plan& plan, const Machine& machine, const Pattern& pattern) {
  std::vector<std::uint32_t> role_of(machine.endpoint_count(), 0);
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) role_of[e] = r;
  const auto alike = [&](EndpointId a, EndpointId b) {
    if (a == b) return true;
    if (role_of[a] != role_of[b] || a >= machine.devices.size() || b >= machine.devices.size()) return false;
    return machine.devices[a].type == machine.devices[b].type &&
           machine.devices[a].speed == machine.devices[b].speed;
  };
  const EndpointId first = pattern.groups.front().front();
  return std::all_of(pattern.groups.begin(), pattern.groups.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(), [&](EndpointId e) { return alike(first, e); });
  });
}

/// Number of messages of the collectives of a plan, by pattern.
std::vector<double> message_counts(const Plan& plan) {
  std::vector<double> result(plan.patterns.size(), 0);
  const std::vector<double> times = times_of_communications(plan);
  for (CommId c = 0; c < plan.communications.size(); ++c) {
    const Communication& comm = plan.communications[c];
    const Pattern& pattern = plan.patterns[comm.pattern];
    double messages = 0;
    for (const Round& round : pattern.rounds)
      messages += static_cast<double>(round.message_count()) * round.repeat;
    result[comm.pattern] += times[c] * messages * static_cast<double>(pattern.groups.size());
  }
  return result;
}

/// By pattern: what `automatic` means for it.
std::vector<bool> automatic_is_chunk(const Plan& plan, const Machine& machine, const FlowTable& table) {
  EqualRounds equal_rounds(machine, table);
  const LinkConflicts conflicts(plan, table, [](LinkId link) { return link; });
  const std::vector<double> messages = message_counts(plan);
  std::vector<bool> result(plan.patterns.size(), false);
  double total = 0;
  for (std::size_t p = 0; p < plan.patterns.size(); ++p) {
    const Pattern& pattern = plan.patterns[p];
    if (pattern.groups.empty() || pattern.groups.front().empty()) continue;
    result[p] = conflicts(p) || !equal_rounds(pattern, table.first_group[p], table.first_group[p + 1],
                                              ranks_are_alike(plan, machine, pattern));
    if (result[p]) total += messages[p];
  }
  if (total > most_messages_one_by_one) result.assign(plan.patterns.size(), false);
  return result;
}

}  // namespace

std::vector<bool> ranks_go_one_by_one(const Plan& plan, const Machine& machine, const FlowTable& table) {
  enum : char { unused, in_step, one_by_one };
  std::vector<char> mode(plan.patterns.size(), unused);
  const std::vector<bool> automatic = automatic_is_chunk(plan, machine, table);
  const auto set = [&](std::size_t pattern, char wanted) {
    if (mode[pattern] != unused && mode[pattern] != wanted)
      throw std::logic_error("communications of one pattern are to be replayed in different fidelities");
    mode[pattern] = wanted;
  };
  for (const Role& role : plan.roles) {
    for (const Task& task : role.program) {
      if (task.kind == Task::Kind::compute) continue;
      const Communication& comm = plan.communications[task.comm];
      const std::vector<Round>& rounds = plan.patterns[comm.pattern].rounds;
      // A round that stands for all steps of a library has no messages of its own for each of them: its ranks
      // would wait for their neighbours only, and not for all that have to contribute.
      const bool stands_for_steps = std::any_of(rounds.begin(), rounds.end(), [](const Round& round) {
        return round.latency_s.has_value() || round.rotation.has_value();
      });
      if (task.kind == Task::Kind::collective && stands_for_steps)
        set(comm.pattern, in_step);
      else if (task.kind != Task::Kind::collective || comm.fidelity == Fidelity::chunk)
        set(comm.pattern, one_by_one);
      else if (comm.fidelity == Fidelity::fluid)
        set(comm.pattern, in_step);
      else if (mode[comm.pattern] == unused)
        set(comm.pattern, automatic[comm.pattern] ? one_by_one : in_step);
    }
  }
  std::vector<bool> result(mode.size());
  std::transform(mode.begin(), mode.end(), result.begin(), [](char m) { return m == one_by_one; });
  return result;
}

}  // namespace convoy::replays
