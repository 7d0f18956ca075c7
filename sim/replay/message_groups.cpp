// SPDX-License-Identifier: MIT
#include "sim/replay/message_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace convoy {

MessageGroups::MessageGroups(const Plan& plan, const FlowTable& table, const std::vector<bool>& one_by_one,
                             const Folding& folding, Engine& engine, Courier& courier,
                             MessageListener& listener)
    : plan_(plan),
      table_(table),
      one_by_one_(one_by_one),
      folding_(folding),
      engine_(engine),
      courier_(courier),
      listener_(listener),
      groups_(folding.groups.size()),
      group_of_(plan.patterns.size()) {
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const FlowGroup& representative = table.groups[folding.groups[g]];
    const std::size_t round_count = plan.patterns[representative.pattern].rounds.size();
    group.flows.resize(round_count);
    for (const EndpointId e : plan.patterns[representative.pattern].groups[representative.index]) {
      const std::uint32_t c = folding.endpoint_class[e];
      if (!group.member_of.emplace(c, static_cast<std::uint32_t>(group.members.size())).second) continue;
      group.members.emplace_back().endpoint_class = c;
      group.members.back().sends.resize(round_count);
      group.members.back().receives.resize(round_count);
      group_of_[representative.pattern].emplace(c, g);
    }
    std::set<std::uint32_t> seen;  // a flow class belongs to one round
    for (std::uint32_t f = representative.first_flow;
         f < representative.first_flow + representative.flow_count; ++f) {
      const std::uint32_t flow_class = folding.flow_class[f];
      if (!seen.insert(flow_class).second) continue;
      const Flow& flow = table.flows[f];
      group.flows[flow.round].push_back(flow_class);
      if (!one_by_one[representative.pattern]) continue;
      const std::uint32_t from = group.member_of.at(folding.endpoint_class[flow.from]),
                          to = group.member_of.at(folding.endpoint_class[flow.to]);
      group.members[from].sends[flow.round].push_back({flow_class, to});
      group.members[to].receives[flow.round].push_back({flow_class, from});
      ++group.members[to].receive_count;
    }
  }
}

MessageGroups::Run& MessageGroups::run_of(CommId comm, std::uint32_t endpoint_class, std::uint32_t& member) {
  const std::uint32_t pattern = plan_.communications[comm].pattern;
  const auto found = group_of_[pattern].find(endpoint_class);
  if (found == group_of_[pattern].end())
    throw std::logic_error(
        fmt::format("'{}' is used by an endpoint outside its groups", plan_.communications[comm].name));
  const Group& group = groups_[found->second];
  member = group.member_of.at(endpoint_class);
  const auto [it, fresh] = runs_.try_emplace((std::uint64_t{comm} << 32) | found->second);
  Run& run = it->second;
  if (fresh) {
    run.comm = comm;
    run.group = &group;
    if (one_by_one_[pattern]) {
      run.ranks.resize(group.members.size());
      for (const Round& round : plan_.patterns[pattern].rounds) run.steps += round.repeat;
      for (std::size_t m = 0; m < group.members.size(); ++m) {
        // Read for sends, whose pattern has one round; a collective may have none.
        if (!group.flows.empty())
          run.ranks[m].to_deliver = static_cast<std::uint32_t>(group.members[m].sends[0].size());
        run.ranks[m].to_receive = group.members[m].receive_count;
      }
    }
  }
  return run;
}

void MessageGroups::start(std::uint32_t endpoint_class, TaskId id, const Task& task) {
  std::uint32_t member = 0;
  Run& run = run_of(task.comm, endpoint_class, member);
  if (!one_by_one_[comm_of(run).pattern]) {
    if (run.ranks.empty()) run.ranks.resize(run.group->members.size());
    run.ranks[member].task = id;
    if (++run.arrived < run.group->members.size()) return;
    for (std::size_t m = 0; m < run.ranks.size(); ++m) {
      listener_.messages_begin(run.group->members[m].endpoint_class, run.ranks[m].task);
      listener_.message_begins(run.group->members[m].endpoint_class);
    }
    after_overhead(run, [this, &run] { next_round_in_step(run); });
    return;
  }
  Run::Rank& rank = run.ranks[member];
  switch (task.kind) {
    case Task::Kind::collective:
      rank.task = id;
      rank.started = true;
      listener_.message_begins(endpoint_class);
      after_overhead(run, [this, &run, member] {
        listener_.message_ends(run.group->members[member].endpoint_class);
        begin_step(run, member);
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

void MessageGroups::after_overhead(const Run& run, std::function<void()> next) {
  const double overhead_s = comm_of(run).overhead_s;
  if (overhead_s == 0) {
    next();
    return;
  }
  engine_.after(overhead_s, [this, next = std::move(next)] {
    next();
    listener_.after_event();
  });
}

double MessageGroups::bytes_of(const Run& run, std::uint32_t flow_class) const {
  return comm_of(run).bytes * table_.flows[folding_.flows[flow_class]].fraction;
}

// --- all ranks in step (fluid) ---

void MessageGroups::next_round_in_step(Run& run) {
  const std::vector<std::vector<std::uint32_t>>& rounds = run.group->flows;
  while (run.round < rounds.size() && rounds[run.round].empty()) ++run.round;
  if (run.round == rounds.size()) {
    end_in_step(run);
    return;
  }
  const double repeat = rounds_of(run)[run.round].repeat;
  run.under_way = rounds[run.round].size();
  for (const std::uint32_t flow_class : rounds[run.round])
    courier_.launch(flow_class, bytes_of(run, flow_class), repeat, [this, &run] {
      if (--run.under_way > 0) return;
      ++run.round;
      next_round_in_step(run);
    });
}

void MessageGroups::end_in_step(Run& run) {
  for (std::size_t m = 0; m < run.ranks.size(); ++m) {
    listener_.message_ends(run.group->members[m].endpoint_class);
    listener_.task_done(run.group->members[m].endpoint_class, run.ranks[m].task);
  }
}

// --- ranks one by one (chunk, send and receive) ---

/// `delivered` gets the members at the flow's ends.
void MessageGroups::launch_for_ends(Run& run, std::uint32_t flow_class,
                                    std::function<void(std::uint32_t, std::uint32_t)> delivered) {
  courier_.launch_for_ends(flow_class, bytes_of(run, flow_class),
                           [&run, delivered = std::move(delivered)](std::uint32_t from, std::uint32_t to) {
                             delivered(run.group->member_of.at(from), run.group->member_of.at(to));
                           });
}

std::uint32_t MessageGroups::round_of(const Run& run, std::uint32_t step) const {
  std::uint32_t round = 0;
  for (const std::vector<Round>& rounds = rounds_of(run); step >= rounds[round].repeat; ++round)
    step -= rounds[round].repeat;
  return round;
}

void MessageGroups::begin_step(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  const Group::Member& self = run.group->members[member];
  for (; rank.step < run.steps; ++rank.step) {
    const std::uint32_t round = round_of(run, rank.step);
    rank.missing = self.sends[round].size() + self.receives[round].size();
    if (rank.missing == 0) continue;
    rank.step_begun = true;
    for (const Group::Member::Message& message : self.sends[round]) launch_if_met(run, message, rank.step);
    for (const Group::Member::Message& message : self.receives[round])
      if (message.peer != member) launch_if_met(run, message, rank.step);
    return;
  }
  listener_.task_done(self.endpoint_class, rank.task);
}

/// The other end cannot be past the step: it needs this message for it.
void MessageGroups::launch_if_met(Run& run, const Group::Member::Message& message, std::uint32_t step) {
  const Run::Rank& peer = run.ranks[message.peer];
  if (peer.step != step || !peer.step_begun) return;
  launch_for_ends(run, message.flow_class, [this, &run](std::uint32_t from, std::uint32_t to) {
    message_there(run, from);
    message_there(run, to);
  });
}

void MessageGroups::message_there(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  if (--rank.missing > 0) return;
  rank.step_begun = false;
  ++rank.step;
  begin_step(run, member);
}

void MessageGroups::send(Run& run, std::uint32_t member) {
  Run::Rank& rank = run.ranks[member];
  const Group::Member& self = run.group->members[member];
  if (rank.to_deliver == 0) listener_.task_done(self.endpoint_class, rank.task);
  for (const Group::Member::Message& message : self.sends[0])
    launch_for_ends(run, message.flow_class, [this, &run](std::uint32_t from, std::uint32_t to) {
      Run::Rank& sender = run.ranks[from];
      if (--sender.to_deliver == 0) listener_.task_done(run.group->members[from].endpoint_class, sender.task);
      Run::Rank& receiver = run.ranks[to];
      if (--receiver.to_receive == 0 && receiver.receive_started)
        listener_.task_done(run.group->members[to].endpoint_class, receiver.receive_task);
    });
}

}  // namespace convoy
