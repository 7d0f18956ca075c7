// SPDX-License-Identifier: MIT
#include "sim/replay/link_conflicts.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

namespace convoy::inline replays {
namespace {

/// Calls `crossing(group, link)` for every link of every path and of every end of an all-to-all.
template <class Crossing>
void for_each_crossing(const FlowTable& table, Crossing crossing) {
  for (const FlowPath& path : table.paths)
    for (const LinkId link : table.route(path)) crossing(path.group, link);
  for (const AllToAllFlows& flows : table.all_to_all)
    for (const auto* ends : {&flows.senders, &flows.receivers})
      for (const AllToAllFlows::End& end : *ends)
        for (const LinkId link : table.half(end)) crossing(flows.group, link);
}

}  // namespace

LinkConflicts::LinkConflicts(const Plan& plan, const FlowTable& table,
                             const std::function<std::uint32_t(LinkId)>& place, const CollectiveOrder* order)
    : stream_(plan.patterns.size(), unused), meets_(plan.patterns.size(), false) {
  std::vector<std::uint32_t> uses(plan.patterns.size(), 0);
  for (const Communication& comm : plan.communications) ++uses[comm.pattern];
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      if (task.kind != Task::Kind::compute) add(plan.communications[task.comm].pattern, task);
  for (std::size_t p = 0; p < plan.patterns.size(); ++p) meets_[p] = stream_[p] == no_order && uses[p] > 1;
  meet_in_places(plan, table, place, order);
}

void LinkConflicts::add(std::uint32_t pattern, const Task& task) {
  const int stream = task.kind == Task::Kind::collective ? task.stream : no_order;
  stream_[pattern] = stream_[pattern] == unused || stream_[pattern] == stream ? stream : no_order;
}

/// Groups that cross one place: all of them follow one another if each of them follows the first, on its stream or
/// by the order in which all programs wait for them.
void LinkConflicts::meet_in_places(const Plan& plan, const FlowTable& table,
                                   const std::function<std::uint32_t(LinkId)>& place,
                                   const CollectiveOrder* order) {
  std::map<std::vector<EndpointId>, std::uint32_t> known;
  std::vector<std::uint32_t> members;  // by group of the table; equal if the members are the same
  for (const FlowGroup& group : table.groups)
    members.push_back(known
                          .emplace(plan.patterns[group.pattern].groups[group.index],
                                   static_cast<std::uint32_t>(known.size()))
                          .first->second);
  constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max(), mixed = nobody - 1;
  std::vector<std::uint32_t> first;  // by place: a group
  const auto are_of_one_stream = [&](std::uint32_t group, std::uint32_t other) {
    const std::uint32_t a = table.groups[group].pattern, b = table.groups[other].pattern;
    return stream_[a] >= 0 && stream_[a] == stream_[b] && members[group] == members[other];
  };
  for_each_crossing(table, [&](std::uint32_t group, LinkId link) {
    const std::uint32_t at = place(link);
    if (at >= first.size()) first.resize(at + 1, nobody);
    const std::uint32_t other = first[at] == nobody ? first[at] = group : first[at];
    if (other == group || other == mixed) return;
    if (!are_of_one_stream(group, other)) first[at] = mixed;
  });
  if (order != nullptr) {
    constexpr std::size_t most_groups = 64;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> groups;  // of mixed places
    for_each_crossing(table, [&](std::uint32_t group, LinkId link) {
      if (first[place(link)] != mixed) return;
      std::vector<std::uint32_t>& here = groups[place(link)];
      if (here.size() <= most_groups && std::find(here.begin(), here.end(), group) == here.end())
        here.push_back(group);
    });
    const auto follow = [&](std::uint32_t group, std::uint32_t other) {
      const std::uint32_t a = table.groups[group].pattern, b = table.groups[other].pattern;
      return are_of_one_stream(group, other) ||
             (stream_[a] >= 0 && stream_[b] >= 0 && members[group] == members[other] && (*order)(a, b));
    };
    for (const auto& [at, here] : groups) {
      bool all = here.size() <= most_groups;
      for (std::size_t i = 0; all && i < here.size(); ++i)
        for (std::size_t k = 0; all && k < i; ++k) all = follow(here[i], here[k]);
      if (all) first[at] = here.front();
    }
  }
  for_each_crossing(table, [&](std::uint32_t group, LinkId link) {
    if (first[place(link)] == mixed) meets_[table.groups[group].pattern] = true;
  });
}

CollectiveOrder::CollectiveOrder(const Plan& plan) {
  std::set<const Task*> known;
  for (const Role& role : plan.roles)
    if (known.insert(role.program.get().data()).second) add(plan, role.program);
}

bool CollectiveOrder::operator()(std::uint32_t pattern, std::uint32_t other) const {
  const std::pair<std::uint32_t, std::uint32_t> both = std::minmax(pattern, other);
  return is_known_ && apart_.contains(both) && !together_.contains(both);
}

void CollectiveOrder::add(const Plan& plan, const std::vector<Task>& program) {
  constexpr std::size_t most = 256;
  using Before = std::bitset<most>;
  std::vector<Before> before(program.size());  // by task: collectives that have ended when it has
  std::map<int, TaskId> last;                  // by stream
  std::vector<std::uint32_t> patterns;         // of the collectives so far
  for (TaskId t = 0; t < program.size() && is_known_; ++t) {
    const Task& task = program[t];
    for (const TaskId other : task.after) before[t] |= before[other];
    if (task.stream != Task::no_stream) {
      const auto [previous, fresh] = last.try_emplace(task.stream, t);
      if (!fresh) before[t] |= before[std::exchange(previous->second, t)];
    }
    if (task.kind != Task::Kind::collective) continue;
    const std::uint32_t pattern = plan.communications[task.comm].pattern;
    for (std::size_t each = 0; each < patterns.size(); ++each)
      (before[t][each] ? apart_ : together_).insert(std::minmax(pattern, patterns[each]));
    if (patterns.size() == most)
      is_known_ = false;
    else
      before[t].set(patterns.size());
    patterns.push_back(pattern);
  }
}

std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table) {
  std::uint32_t ports = 0;
  for (const Link& link : machine.links) ports = std::max(ports, link.port + 1);
  const auto links = static_cast<LinkId>(machine.links.size());
  const CollectiveOrder order(plan);
  const LinkConflicts conflicts(
      plan, table,
      [&](LinkId link) { return link < links ? machine.links[link].port : ports + (link - links); }, &order);
  std::vector<bool> result(plan.patterns.size());
  for (std::size_t p = 0; p < result.size(); ++p) result[p] = !conflicts(p);
  return result;
}

}  // namespace convoy::replays
