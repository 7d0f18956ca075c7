// SPDX-License-Identifier: MIT
#include "sim/replay/message_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace convoy::inline replays {

MessageGroups::MessageGroups(const Plan& plan, const FlowTable& table, const std::vector<bool>& one_by_one,
                             const Folding& folding, Engine& engine, Transfers& transfers,
                             MessageListener& listener, UncontendedCollectives* uncontended,
                             std::vector<bool> alone, std::vector<bool> lone)
    : plan_(plan),
      table_(table),
      one_by_one_(one_by_one),
      folding_(folding),
      engine_(engine),
      transfers_(transfers),
      listener_(listener),
      uncontended_(uncontended),
      alone_(std::move(alone)),
      lone_(std::move(lone)),
      groups_(folding.groups.size()),
      uncontended_of_(folding.groups.size()),
      member_of_(plan.patterns.size()) {
  for (std::uint32_t g = 0; g < groups_.size(); ++g) build_group(g, table.groups[folding.groups[g]]);
}

/// @param representative of the class
void MessageGroups::build_group(std::uint32_t g, const FlowGroup& representative) {
  Group& group = groups_[g];
  const std::uint32_t pattern = representative.pattern;
  std::unordered_map<std::uint32_t, Membership>& member_of = member_of_[pattern];
  for (const EndpointId e : plan_.patterns[pattern].groups[representative.index]) {
    const std::uint32_t c = folding_.endpoint_class[e];
    const auto position = static_cast<std::uint32_t>(group.members.size());
    if (member_of.emplace(c, Membership{g, position}).second) group.members.push_back({c});
  }
  group.flows.resize(plan_.patterns[pattern].rounds.size());
  for (const std::uint32_t flow_class : folding_.group_flows[g])
    group.flows[flow(flow_class).round].push_back(flow_class);
  if (one_by_one_[pattern]) part_messages(group, member_of);
}

void MessageGroups::part_messages(Group& group,
                                  const std::unordered_map<std::uint32_t, Membership>& member_of) const {
  const std::size_t rounds = group.flows.size();
  const auto member = [&](EndpointId e) { return member_of.at(folding_.endpoint_class[e]).member; };
  group.parts.resize(group.members.size() * rounds);
  for (std::size_t r = 0; r < rounds; ++r)
    for (const std::uint32_t f : group.flows[r]) {
      ++group.parts[member(path(f).from) * rounds + r].sends;
      ++group.parts[member(path(f).to) * rounds + r].receives;
    }
  std::uint32_t next = 0;
  for (Group::Part& part : group.parts) {
    part.first = next;
    next += part.count();
    part.sends = part.receives = 0;
  }
  // Sends fill a part from its front and receives from its back.
  group.messages.resize(next);
  group.parts.push_back({next});
  for (std::size_t r = 0; r < rounds; ++r)
    for (const std::uint32_t f : group.flows[r]) {
      const std::uint32_t from = member(path(f).from), to = member(path(f).to),
                          route = folding_.route_class[f];
      Group::Part& sender = group.parts[from * rounds + r];
      group.messages[sender.first + sender.sends++] = {route, to, flow(f).fraction};
      const std::size_t place = to * rounds + r;
      group.messages[group.parts[place + 1].first - ++group.parts[place].receives] = {route, from,
                                                                                      flow(f).fraction};
      ++group.members[to].receive_count;
    }
}

MessageGroups::Run& MessageGroups::run_of(CommId comm, std::uint32_t endpoint_class, std::uint32_t& member) {
  const std::uint32_t pattern = plan_.communications[comm].pattern;
  const auto found = member_of_[pattern].find(endpoint_class);
  if (found == member_of_[pattern].end())
    throw std::logic_error(
        fmt::format("'{}' is used by an endpoint outside its groups", plan_.communications[comm].name));
  const Group& group = groups_[found->second.group];
  member = found->second.member;
  const auto [it, fresh] = runs_.try_emplace((std::uint64_t{comm} << 32) | found->second.group);
  Run& run = it->second;
  if (fresh) {
    run.groups = this;
    run.comm = comm;
    run.group = &group;
    run.ranks.resize(group.members.size());
    if (one_by_one_[pattern])
      for (std::size_t m = 0; m < group.members.size(); ++m) {
        // Used for sends, whose pattern has one round; a collective may have none.
        if (!group.flows.empty())
          run.ranks[m].to_deliver = group.part(static_cast<std::uint32_t>(m), 0).sends;
        run.ranks[m].to_receive = group.members[m].receive_count;
      }
    if (!lone_.empty() && lone_[pattern]) run.foresight.emplace(time_to_look_ahead_s(run));
  }
  return run;
}

void MessageGroups::start(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm) {
  std::uint32_t member = 0;
  Run& run = run_of(comm, endpoint_class, member);
  if (one_by_one_[comm_of(run).pattern]) {
    start_one_by_one(run, member, id, kind);
    return;
  }
  run.ranks[member].task = id;
  if (++run.arrived < run.group->members.size()) return;
  for (std::size_t m = 0; m < run.ranks.size(); ++m) {
    listener_.messages_begin(run.group->members[m].endpoint_class, run.ranks[m].task);
    listener_.message_begins(run.group->members[m].endpoint_class);
  }
  after_overhead(run, [this, &run] { start_in_step(run); });
}

void MessageGroups::start_one_by_one(Run& run, std::uint32_t member, TaskId id, Task::Kind kind) {
  Run::Rank& rank = run.ranks[member];
  const std::uint32_t endpoint_class = run.group->members[member].endpoint_class;
  switch (kind) {
    case Task::Kind::collective:
      rank.task = id;
      rank.started = true;
      listener_.message_begins(endpoint_class);
      after_overhead(run, [this, &run, member] {
        listener_.message_ends(run.group->members[member].endpoint_class);
        reach_first_step(run, member);
      });
      break;
    case Task::Kind::send:
      rank.task = id;
      rank.started = true;
      listener_.message_begins(endpoint_class);
      after_overhead(run, [this, &run, member] {
        listener_.message_ends(run.group->members[member].endpoint_class);
        send(run, member);
      });
      break;
    case Task::Kind::receive:
      rank.receive_task = id;
      rank.receive_started = true;
      if (rank.to_receive == 0) listener_.task_done(endpoint_class, id);
      break;
    case Task::Kind::compute:
      break;
  }
}

template <class Closure>
void MessageGroups::after_overhead(const Run& run, Closure next) {
  const double overhead_s = comm_of(run).overhead_s;
  if (overhead_s == 0) {
    next();
    return;
  }
  engine_.after(overhead_s) = [this, next] {
    next();
    listener_.after_event();
  };
}

// --- all ranks in step (fluid) ---

void MessageGroups::start_in_step(Run& run) {
  Uncontended& uncontended = uncontended_of_[static_cast<std::size_t>(run.group - groups_.data())];
  if (!std::exchange(uncontended.known, true) && uncontended_ && alone_[comm_of(run).pattern])
    uncontended.times = uncontended_->find(run.group->flows, rounds_of(run));
  if (!uncontended.times) {
    next_round_in_step(run);
    return;
  }
  engine_.after(uncontended.times->latency_s +
                comm_of(run).bytes * uncontended.times->s_per_byte) = [this, &run, &uncontended] {
    ++uncontended.communications;
    uncontended.bytes += comm_of(run).bytes;
    end_in_step(run);
    listener_.after_event();
  };
}

void MessageGroups::count_uncontended(LinkClock& clock) const {
  for (const Uncontended& uncontended : uncontended_of_)
    if (uncontended.times)
      for (const UncontendedCollective::Use& use : uncontended.times->uses)
        clock.add(use.clock, uncontended.communications * use.latency_s + uncontended.bytes * use.s_per_byte);
}

void MessageGroups::next_round_in_step(Run& run) {
  const std::vector<std::vector<std::uint32_t>>& rounds = run.group->flows;
  while (run.round < rounds.size() && rounds[run.round].empty()) ++run.round;
  if (run.round == rounds.size()) {
    end_in_step(run);
    return;
  }
  if (rounds_of(run)[run.round].rotation) {
    if (!next_rotation(run)) end_in_step(run);
    return;
  }
  const double repeat = rounds_of(run)[run.round].repeat;
  run.under_way = rounds[run.round].size();
  for (const std::uint32_t f : rounds[run.round])
    transfers_.launch(folding_.route_class[f], comm_of(run).bytes * flow(f).fraction, repeat, [this, &run] {
      if (--run.under_way > 0) return;
      ++run.round;
      next_round_in_step(run);
    });
}

/// Goes on with a round whose shares rotate, a repetition at a time.
/// @return false: with it all rounds are done
bool MessageGroups::next_rotation(Run& run) {
  const Round& round = rounds_of(run)[run.round];
  for (; run.repetition < round.repeat; ++run.repetition) {
    const auto bytes_of_flow = [&](std::uint32_t flow_class) {
      return comm_of(run).bytes * round.rotation->share(flow(flow_class).pair, run.repetition);
    };
    const std::vector<std::uint32_t>& flows = run.group->flows[run.round];
    run.under_way = static_cast<std::size_t>(
        std::count_if(flows.begin(), flows.end(), [&](auto flow) { return bytes_of_flow(flow) > 0; }));
    if (run.under_way == 0) continue;
    for (const std::uint32_t flow_class : flows)
      if (const double bytes = bytes_of_flow(flow_class); bytes > 0)
        transfers_.launch(folding_.route_class[flow_class], bytes, 1, [this, &run] {
          if (--run.under_way > 0) return;
          ++run.repetition;
          next_round_in_step(run);
        });
    return true;
  }
  run.repetition = 0;
  ++run.round;
  if (run.round == rounds_of(run).size()) return false;
  next_round_in_step(run);
  return true;
}

void MessageGroups::end_in_step(Run& run) {
  for (std::size_t m = 0; m < run.ranks.size(); ++m) {
    listener_.message_ends(run.group->members[m].endpoint_class);
    listener_.task_done(run.group->members[m].endpoint_class, run.ranks[m].task);
  }
}

// --- ranks one by one (chunk, send and receive) ---

void MessageGroups::begin_step(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  const std::vector<Round>& rounds = rounds_of(run);
  for (; rank.round < rounds.size(); ++rank.step, ++rank.repetition) {
    while (rank.round < rounds.size() && rank.repetition >= rounds[rank.round].repeat)
      ++rank.round, rank.repetition = 0;
    if (rank.round == rounds.size()) break;
    rank.missing = run.group->part(member, rank.round).count();
    if (rank.missing == 0) continue;
    rank.step_begun = true;
    const std::uint32_t round = rank.round;
    for (const Group::Message& message : run.group->sends(member, round))
      launch_if_met(run, member, message, true);
    for (const Group::Message& message : run.group->receives(member, round))
      if (message.peer != member) launch_if_met(run, member, message, false);
    return;
  }
  end_one_by_one(run, member);
}

/// The other end cannot be past this step, because it needs this message for it.
void MessageGroups::launch_if_met(Run& run, std::uint32_t member, const Group::Message& message, bool sends) {
  Run::Rank& peer = run.ranks[message.peer];
  if (peer.step != run.ranks[member].step || !peer.step_begun) return;
  const std::uint32_t from = sends ? member : message.peer, to = sends ? message.peer : member;
  const double bytes = comm_of(run).bytes * message.fraction;
  if (run.foresight) {
    Run::Rank& rank = run.ranks[member];
    const double end_s =
        transfers_.foresee_for_ends(message.route_class, bytes, std::max(rank.ready_s, peer.ready_s));
    rank.step_end_s = std::max(rank.step_end_s, end_s);
    peer.step_end_s = std::max(peer.step_end_s, end_s);
    message_there(run, from);
    message_there(run, to);
    return;
  }
  transfers_.launch_for_ends(message.route_class, bytes, [&run, from, to] {
    run.groups->message_there(run, from);
    run.groups->message_there(run, to);
  });
}

void MessageGroups::message_there(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  if (--rank.missing > 0) return;
  rank.step_begun = false;
  ++rank.step;
  ++rank.repetition;
  if (!run.foresight) {
    begin_step(run, member);
    return;
  }
  rank.ready_s = rank.step_end_s;
  run.foresight->next.push_back(member);
}

void MessageGroups::end_one_by_one(Run& run, std::uint32_t member) {
  const double ready_s = run.ranks[member].ready_s;
  const auto end = [this, &run, member] {
    const std::uint32_t endpoint_class = run.group->members[member].endpoint_class;
    if (run.foresight) listener_.take_foreseen(endpoint_class, run.ranks[member].ready_s);
    listener_.task_done(endpoint_class, run.ranks[member].task);
  };
  if (!run.foresight || ready_s <= engine_.now_s()) {
    end();
    return;
  }
  engine_.after(ready_s - engine_.now_s()) = [this, end] {
    end();
    listener_.after_event();
  };
}

void MessageGroups::send(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  if (rank.to_deliver == 0) listener_.task_done(run.group->members[member].endpoint_class, rank.task);
  for (const Group::Message& message : run.group->sends(member, 0))
    transfers_.launch_for_ends(message.route_class, comm_of(run).bytes * message.fraction,
                               [&run, member, to = message.peer] { run.groups->sent(run, member, to); });
}

void MessageGroups::sent(Run& run, std::uint32_t from, std::uint32_t to) {
  Run::Rank& sender = run.ranks[from];
  if (--sender.to_deliver == 0) listener_.task_done(run.group->members[from].endpoint_class, sender.task);
  Run::Rank& receiver = run.ranks[to];
  if (--receiver.to_receive == 0 && receiver.receive_started)
    listener_.task_done(run.group->members[to].endpoint_class, receiver.receive_task);
}

}  // namespace convoy::replays
