// SPDX-License-Identifier: MIT
#include "sim/replay/flows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace convoy {
namespace {

/// So many messages at most are simulated one by one where nobody has asked for it: a second of work.
constexpr double automatic_messages_limit = 1e6;

/// Whether flows of one round share links so that all get equally much, and carry as much with the same
/// latency: then they end together, and what follows them does too.
class EqualRounds {
 public:
  EqualRounds(const Machine& machine, const FlowTable& table)
      : machine_(machine), table_(table), load_(machine.links.size() + table.connections_Bps.size(), 0) {}

  /// Of all groups of a pattern together: they may share links.
  /// @param alike the ranks come at the same time; else messages that share a link may not be there together
  bool operator()(const Pattern& pattern, std::uint32_t first_group, std::uint32_t last_group, bool alike) {
    alike_ = alike;
    std::vector<std::vector<const Flow*>> rounds(pattern.rounds.size());
    std::vector<std::size_t> members;
    for (std::uint32_t g = first_group; g < last_group; ++g) {
      const FlowGroup& group = table_.groups[g];
      for (std::uint32_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f)
        rounds[table_.flows[f].round].push_back(&table_.flows[f]);
    }
    return std::all_of(pattern.rounds.begin(), pattern.rounds.end(), takes_all_members(pattern)) &&
           std::all_of(rounds.begin(), rounds.end(), [&](const auto& flows) { return are_equal(flows); });
  }

 private:
  /// Whether every member of a group sends and gets as many messages of a round as any other.
  static std::function<bool(const Round&)> takes_all_members(const Pattern& pattern) {
    const std::size_t members = pattern.groups.front().size();
    const bool same_size = std::all_of(pattern.groups.begin(), pattern.groups.end(),
                                       [&](const auto& group) { return group.size() == members; });
    return [members, same_size](const Round& round) {
      std::vector<std::uint32_t> sent(members, 0), got(members, 0);
      for (const auto& [from, to] : round.pairs) ++sent[from], ++got[to];
      const auto even = [](const std::vector<std::uint32_t>& counts) {
        return std::all_of(counts.begin(), counts.end(),
                           [&](std::uint32_t count) { return count == counts.front(); });
      };
      return same_size && even(sent) && even(got);
    };
  }

  bool are_equal(const std::vector<const Flow*>& flows) {
    for (const Flow* flow : flows)
      for (const LinkId link : table_.route(*flow)) ++load_[link];
    std::optional<double> share_Bps;
    const bool equal = std::all_of(flows.begin(), flows.end(), [&](const Flow* flow) {
      double mine_Bps = std::numeric_limits<double>::infinity();
      bool shares = false;
      for (const LinkId link : table_.route(*flow)) {
        mine_Bps = std::min(mine_Bps, bandwidth_Bps(machine_, table_, link) / load_[link]);
        shares = shares || load_[link] > 1;
      }
      if (!share_Bps) share_Bps = mine_Bps;
      return mine_Bps == *share_Bps && (alike_ || !shares) && flow->latency_s == flows.front()->latency_s &&
             flow->fraction == flows.front()->fraction;
    });
    for (const Flow* flow : flows)
      for (const LinkId link : table_.route(*flow)) load_[link] = 0;
    return equal;
  }

  const Machine& machine_;
  const FlowTable& table_;
  std::vector<std::uint32_t> load_;  ///< flows by link; all 0 between calls
  bool alike_ = true;
};

/// Whether all ranks of a pattern run one program at one speed.
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

/// By pattern: whether something else may be on its links, or in places of which each has several links,
/// while one of its communications is under way. Communications that the same endpoints have on one stream
/// follow one another.
class Company {
 public:
  /// @param place by link
  Company(const Plan& plan, const FlowTable& table, const std::function<std::uint32_t(LinkId)>& place)
      : stream_(plan.patterns.size(), unused), meets_(plan.patterns.size(), false) {
    std::vector<std::uint32_t> uses(plan.patterns.size(), 0);
    for (const Communication& comm : plan.communications) ++uses[comm.pattern];
    for (const Role& role : plan.roles)
      for (const Task& task : role.program)
        if (task.kind != Task::Kind::compute) add(plan.communications[task.comm].pattern, task);
    for (std::size_t p = 0; p < plan.patterns.size(); ++p) meets_[p] = stream_[p] == no_order && uses[p] > 1;
    meet_in_places(plan, table, place);
  }
  bool operator()(std::size_t pattern) const { return meets_[pattern]; }

 private:
  static constexpr int unused = -2, no_order = Task::no_stream;

  void add(std::uint32_t pattern, const Task& task) {
    const int stream = task.kind == Task::Kind::collective ? task.stream : no_order;
    stream_[pattern] = stream_[pattern] == unused || stream_[pattern] == stream ? stream : no_order;
  }

  /// Groups that cross one place: all follow one another if every one follows the first.
  void meet_in_places(const Plan& plan, const FlowTable& table,
                      const std::function<std::uint32_t(LinkId)>& place) {
    std::map<std::vector<EndpointId>, std::uint32_t> known;
    std::vector<std::uint32_t> members;  // by group of the table: equal where the members are
    for (const FlowGroup& group : table.groups)
      members.push_back(known
                            .emplace(plan.patterns[group.pattern].groups[group.index],
                                     static_cast<std::uint32_t>(known.size()))
                            .first->second);
    constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max(), mixed = nobody - 1;
    std::vector<std::uint32_t> first;  // by place: a group
    for (const Flow& flow : table.flows)
      for (const LinkId link : table.route(flow)) {
        const std::uint32_t at = place(link);
        if (at >= first.size()) first.resize(at + 1, nobody);
        const std::uint32_t other = first[at] == nobody ? first[at] = flow.group : first[at];
        if (other == flow.group || other == mixed) continue;
        const std::uint32_t a = table.groups[flow.group].pattern, b = table.groups[other].pattern;
        const bool follow =
            stream_[a] >= 0 && stream_[a] == stream_[b] && members[flow.group] == members[other];
        if (!follow) first[at] = mixed;
      }
    for (const Flow& flow : table.flows)
      for (const LinkId link : table.route(flow))
        if (first[place(link)] == mixed) meets_[table.groups[flow.group].pattern] = true;
  }

  std::vector<int> stream_;  ///< by pattern
  std::vector<bool> meets_;
};

/// Messages that the collectives of a plan have, pattern by pattern.
std::vector<double> message_counts(const Plan& plan) {
  std::vector<double> result(plan.patterns.size(), 0);
  for (const Communication& comm : plan.communications) {
    const Pattern& pattern = plan.patterns[comm.pattern];
    double messages = 0;
    for (const Round& round : pattern.rounds)
      messages += static_cast<double>(round.pairs.size()) * round.repeat;
    result[comm.pattern] += messages * static_cast<double>(pattern.groups.size());
  }
  return result;
}

/// By pattern: what `automatic` means.
std::vector<bool> automatic_is_chunk(const Plan& plan, const Machine& machine, const FlowTable& table) {
  EqualRounds equal_rounds(machine, table);
  const Company in_company(plan, table, [](LinkId link) { return link; });
  const std::vector<double> messages = message_counts(plan);
  std::vector<bool> result(plan.patterns.size(), false);
  double total = 0;
  for (std::size_t p = 0; p < plan.patterns.size(); ++p) {
    const Pattern& pattern = plan.patterns[p];
    if (pattern.groups.empty() || pattern.groups.front().empty()) continue;
    result[p] = in_company(p) || !equal_rounds(pattern, table.first_group[p], table.first_group[p + 1],
                                               ranks_are_alike(plan, machine, pattern));
    if (result[p]) total += messages[p];
  }
  if (total > automatic_messages_limit) result.assign(plan.patterns.size(), false);
  return result;
}

}  // namespace

std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table) {
  std::uint32_t ports = 0;
  for (const Link& link : machine.links) ports = std::max(ports, link.port + 1);
  const auto links = static_cast<LinkId>(machine.links.size());
  const Company in_company(plan, table, [&](LinkId link) {
    return link < links ? machine.links[link].port : ports + (link - links);
  });
  std::vector<bool> result(plan.patterns.size());
  for (std::size_t p = 0; p < result.size(); ++p) result[p] = !in_company(p);
  return result;
}

double bandwidth_Bps(const Machine& machine, const FlowTable& table, LinkId link) {
  return link < machine.links.size() ? machine.links[link].bandwidth_Bps
                                     : table.connections_Bps[link - machine.links.size()];
}

FlowTable expand_flows(const Plan& plan, const Machine& machine) {
  FlowTable table;
  Route route;
  std::map<std::pair<EndpointId, EndpointId>, LinkId> connections;
  for (std::uint32_t p = 0; p < plan.patterns.size(); ++p) {
    const Pattern& pattern = plan.patterns[p];
    table.first_group.push_back(static_cast<std::uint32_t>(table.groups.size()));
    for (std::uint32_t g = 0; g < pattern.groups.size(); ++g) {
      const std::vector<EndpointId>& members = pattern.groups[g];
      FlowGroup group{p, g, static_cast<std::uint32_t>(table.flows.size()), 0};
      const auto group_id = static_cast<std::uint32_t>(table.groups.size());
      for (std::uint32_t r = 0; r < pattern.rounds.size(); ++r) {
        const Round& round = pattern.rounds[r];
        for (std::size_t k = 0; k < round.pairs.size(); ++k) {
          const EndpointId from = members[round.pairs[k].first], to = members[round.pairs[k].second];
          machine.router->route(from, to, route);
          if (std::isfinite(route.connection_Bps)) {
            const auto next = static_cast<LinkId>(machine.links.size() + table.connections_Bps.size());
            const auto [known, fresh] = connections.emplace(route.connection, next);
            if (fresh) table.connections_Bps.push_back(route.connection_Bps);
            route.links.push_back(known->second);
          }
          table.flows.push_back({group_id, r, from, to, round.fraction(k), route.latency_s,
                                 static_cast<std::uint32_t>(table.links.size()),
                                 static_cast<std::uint32_t>(route.links.size())});
          table.links.insert(table.links.end(), route.links.begin(), route.links.end());
        }
      }
      group.flow_count = static_cast<std::uint32_t>(table.flows.size()) - group.first_flow;
      table.groups.push_back(group);
    }
  }
  table.first_group.push_back(static_cast<std::uint32_t>(table.groups.size()));
  return table;
}

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
      if (task.kind != Task::Kind::collective || comm.fidelity == Fidelity::chunk)
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

}  // namespace convoy
