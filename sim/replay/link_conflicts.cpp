// SPDX-License-Identifier: MIT
#include "sim/replay/link_conflicts.h"

#include <algorithm>
#include <limits>
#include <map>

namespace convoy::inline replays {
namespace {

/// Calls `crossing(group, link)` for every link of every flow.
template <class Crossing>
void for_each_crossing(const FlowTable& table, Crossing crossing) {
  for (const Flow& flow : table.flows)
    for (const LinkId link : table.route(flow)) crossing(flow.group, link);
  for (const AllToAllFlows& flows : table.all_to_all)
    for (const auto* ends : {&flows.senders, &flows.receivers})
      for (const AllToAllFlows::End& end : *ends)
        for (const LinkId link : table.half(end)) crossing(flows.group, link);
}

}  // namespace

LinkConflicts::LinkConflicts(const Plan& plan, const FlowTable& table,
                             const std::function<std::uint32_t(LinkId)>& place)
    : stream_(plan.patterns.size(), unused), meets_(plan.patterns.size(), false) {
  std::vector<std::uint32_t> uses(plan.patterns.size(), 0);
  for (const Communication& comm : plan.communications) ++uses[comm.pattern];
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      if (task.kind != Task::Kind::compute) add(plan.communications[task.comm].pattern, task);
  for (std::size_t p = 0; p < plan.patterns.size(); ++p) meets_[p] = stream_[p] == no_order && uses[p] > 1;
  meet_in_places(plan, table, place);
}

void LinkConflicts::add(std::uint32_t pattern, const Task& task) {
  const int stream = task.kind == Task::Kind::collective ? task.stream : no_order;
  stream_[pattern] = stream_[pattern] == unused || stream_[pattern] == stream ? stream : no_order;
}

/// Groups that cross one place: all of them follow one another if each of them follows the first.
void LinkConflicts::meet_in_places(const Plan& plan, const FlowTable& table,
                                   const std::function<std::uint32_t(LinkId)>& place) {
  std::map<std::vector<EndpointId>, std::uint32_t> known;
  std::vector<std::uint32_t> members;  // by group of the table; equal if the members are the same
  for (const FlowGroup& group : table.groups)
    members.push_back(known
                          .emplace(plan.patterns[group.pattern].groups[group.index],
                                   static_cast<std::uint32_t>(known.size()))
                          .first->second);
  constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max(), mixed = nobody - 1;
  std::vector<std::uint32_t> first;  // by place: a group
  for_each_crossing(table, [&](std::uint32_t group, LinkId link) {
    const std::uint32_t at = place(link);
    if (at >= first.size()) first.resize(at + 1, nobody);
    const std::uint32_t other = first[at] == nobody ? first[at] = group : first[at];
    if (other == group || other == mixed) return;
    const std::uint32_t a = table.groups[group].pattern, b = table.groups[other].pattern;
    const bool follow = stream_[a] >= 0 && stream_[a] == stream_[b] && members[group] == members[other];
    if (!follow) first[at] = mixed;
  });
  for_each_crossing(table, [&](std::uint32_t group, LinkId link) {
    if (first[place(link)] == mixed) meets_[table.groups[group].pattern] = true;
  });
}

std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table) {
  std::uint32_t ports = 0;
  for (const Link& link : machine.links) ports = std::max(ports, link.port + 1);
  const auto links = static_cast<LinkId>(machine.links.size());
  const LinkConflicts conflicts(plan, table, [&](LinkId link) {
    return link < links ? machine.links[link].port : ports + (link - links);
  });
  std::vector<bool> result(plan.patterns.size());
  for (std::size_t p = 0; p < result.size(); ++p) result[p] = !conflicts(p);
  return result;
}

}  // namespace convoy::replays
