// SPDX-License-Identifier: MIT
#include "sim/prove/happens_before.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace convoy::inline prove {
namespace {

using RolePairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

/// Which roles send something to which, of an all-to-all: everyone but to himself.
void add_all_to_all(const AllToAll& messages, const std::vector<EndpointId>& group,
                    const std::vector<std::uint32_t>& role_of, RolePairs& roles) {
  std::map<std::uint32_t, std::set<EndpointId>> senders, receivers;  // by role
  for (const AllToAll::Part& part : messages.senders)
    senders[role_of[group[part.member]]].insert(group[part.member]);
  for (const AllToAll::Part& part : messages.receivers)
    receivers[role_of[group[part.member]]].insert(group[part.member]);
  for (const auto& [from, first] : senders)
    for (const auto& [to, second] : receivers)
      if (first.size() > 1 || first != second) roles.emplace(from, to);
}

/// Which roles send something to which, in a pattern.
RolePairs roles_of_messages(const Pattern& pattern, const std::vector<std::uint32_t>& role_of) {
  RolePairs roles;
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (const Round& round : pattern.rounds) {
      for (const auto& [from, to] : round.pairs) roles.emplace(role_of[group[from]], role_of[group[to]]);
      if (round.all_to_all) add_all_to_all(*round.all_to_all, group, role_of, roles);
    }
  return roles;
}

}  // namespace

RoleOrder::RoleOrder(const Role& role)
    : begins(role.program.size(), 0),
      ends(role.program.size()),
      next(role.program.size()),
      waits(role.program.size(), 0) {
  constexpr TaskId nobody = 0xffffffff;
  std::vector<TaskId> last(role.streams.size(), nobody);
  std::uint32_t place = 0;
  for (TaskId t = 0; t < role.program.size(); ++t) {
    const Task& task = role.program[t];
    const bool computes = task.kind == Task::Kind::compute;
    if (computes && task.stream != 0)
      throw NotCovered(fmt::format("'{}' computes beside the compute stream", task.name));
    const auto wait = [&](TaskId before) {
      next[before].push_back(t);
      ++waits[t];
      begins[t] =
          std::max(begins[t], begins[before] + (role.program[before].kind == Task::Kind::compute ? 1u : 0u));
    };
    for (const TaskId before : task.after) wait(before);
    if (task.stream != Task::no_stream) {
      TaskId& before = last[static_cast<std::size_t>(task.stream)];
      if (before != nobody) wait(before);
      before = t;
    }
    if (computes) begins[t] = place++;
  }
  const std::uint32_t places = place;
  for (TaskId t = static_cast<TaskId>(role.program.size()); t-- > 0;) {
    ends[t] = places;
    for (const TaskId after : next[t])
      ends[t] =
          std::min(ends[t], role.program[after].kind == Task::Kind::compute ? begins[after] : ends[after]);
  }
}

bool RoleOrder::precedes(TaskId task, TaskId later) const {
  std::vector<char> known(next.size(), 0);
  std::vector<TaskId> open{task};
  while (!open.empty()) {
    const TaskId of = open.back();
    open.pop_back();
    for (const TaskId after : next[of]) {
      if (after == later) return true;
      if (after < later && !std::exchange(known[after], 1)) open.push_back(after);
    }
  }
  return false;
}

HappensBefore::HappensBefore(const Plan& plan) : plan_(plan) {
  for (const Role& role : plan.roles) roles_.emplace_back(role);
}

void HappensBefore::for_each(const Machine& machine,
                             const std::function<void(std::uint32_t, TaskId)>& visit) const {
  struct Waiting {
    std::uint32_t unsent = 0;  ///< sends, or members' parts, that have not begun
    std::vector<std::pair<std::uint32_t, TaskId>> tasks;
    std::map<std::uint32_t, std::uint32_t> unsent_of;  ///< sends, by role
    std::optional<CommId> answers;                     ///< of a service: what it answers
  };
  std::vector<std::uint32_t> role_of(machine.endpoint_count(), 0);
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : plan_.roles[r].members) role_of[e] = r;
  std::vector<Waiting> comms(plan_.communications.size());
  std::map<std::uint32_t, RolePairs> messages;  // by pattern, where it was needed
  if (const Service* service = plan_.service())
    for (const Service::Exchange& exchange : service->exchanges) comms[exchange.pull].answers = exchange.push;
  std::size_t left = 0;
  std::vector<std::vector<std::uint32_t>> waits;
  std::deque<std::pair<std::uint32_t, TaskId>> ready;
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r) {
    waits.push_back(roles_[r].waits);
    for (TaskId t = 0; t < plan_.roles[r].program.size(); ++t, ++left) {
      const Task& task = plan_.roles[r].program[t];
      if (task.kind == Task::Kind::collective || task.kind == Task::Kind::send) ++comms[task.comm].unsent;
      if (task.kind == Task::Kind::send) ++comms[task.comm].unsent_of[r];
      if (waits[r][t] == 0) ready.emplace_back(r, t);
    }
  }
  const auto end = [&](std::uint32_t r, TaskId t) {
    --left;
    visit(r, t);
    for (const TaskId after : roles_[r].next[t])
      if (--waits[r][after] == 0) ready.emplace_back(r, after);
  };
  // A receiver waits for those that send it something; where there are several rounds, for all.
  const auto has_all = [&](CommId id, std::uint32_t r) {
    Waiting& comm = comms[id];
    if (comm.answers) {
      const auto push = comms[*comm.answers].unsent_of.find(r);
      return push != comms[*comm.answers].unsent_of.end() && push->second == 0;
    }
    if (comm.unsent == 0) return true;
    const std::uint32_t of = plan_.communications[id].pattern;
    const Pattern& pattern = plan_.patterns[of];
    std::uint32_t sends = 0;
    for (const auto& [role, count] : comm.unsent_of) sends += count;
    if (pattern.rounds.size() > 1 || sends < comm.unsent) return false;
    const auto [pairs, fresh] = messages.try_emplace(of);
    if (fresh) pairs->second = roles_of_messages(pattern, role_of);
    return std::none_of(comm.unsent_of.begin(), comm.unsent_of.end(), [&](const auto& unsent) {
      return unsent.second > 0 && pairs->second.contains({unsent.first, r});
    });
  };
  const auto wake = [&](CommId id) {
    for (const auto& [role, task] : std::exchange(comms[id].tasks, {})) {
      if (has_all(id, role))
        end(role, task);
      else
        comms[id].tasks.emplace_back(role, task);
    }
  };
  std::map<CommId, std::vector<CommId>> answered;  // by push
  for (CommId id = 0; id < comms.size(); ++id)
    if (comms[id].answers) answered[*comms[id].answers].push_back(id);
  while (!ready.empty()) {
    const auto [r, t] = ready.front();
    ready.pop_front();
    const Task& task = plan_.roles[r].program[t];
    if (task.kind == Task::Kind::compute) {
      end(r, t);
      continue;
    }
    Waiting& comm = comms[task.comm];
    if (task.kind == Task::Kind::send)
      end(r, t);
    else
      comm.tasks.emplace_back(r, t);
    if (task.kind != Task::Kind::receive) --comm.unsent;
    if (task.kind == Task::Kind::send) --comm.unsent_of[r];
    wake(task.comm);
    if (const auto answers = answered.find(task.comm); answers != answered.end())
      for (const CommId pull : answers->second) wake(pull);
  }
  if (left == 0) return;
  for (const Waiting& comm : comms)
    for (const auto& [r, t] : comm.tasks)
      throw Refuted(fmt::format("{}: waits for ever for '{}', which others never send",
                                name_of(plan_.roles[r], t, machine),
                                plan_.communications[plan_.roles[r].program[t].comm].name));
  throw Refuted(fmt::format("{} tasks wait for each other", left));
}

const OpMeaning* meaning_in_graph(const Meaning& meaning, const PlanOp& op) {
  if (op.meaning == no_meaning) return nullptr;
  const OpMeaning& means = meaning.operations[op.meaning];
  return means.act == OpMeaning::Act::compute && means.operation != no_meaning ? &means : nullptr;
}

std::string name_of(const Role& role, const Machine& machine) {
  const std::string first = machine.endpoint_name(role.members.front());
  return role.members.size() == 1 ? first : fmt::format("{} and {} more", first, role.members.size() - 1);
}

std::string name_of(const Role& role, TaskId task, const Machine& machine) {
  return fmt::format("{}, task '{}'", name_of(role, machine), role.program[task].name);
}

}  // namespace convoy::prove
