// SPDX-License-Identifier: MIT
#include "sim/replay/flows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

namespace convoy {
namespace {

constexpr std::size_t chunk_ranks_limit = 32;

double narrowest_Bps(const Machine& machine, const FlowTable& table, const Flow& flow) {
  double narrowest = std::numeric_limits<double>::infinity();
  for (const LinkId link : table.route(flow))
    narrowest = std::min(narrowest, bandwidth_Bps(machine, table, link));
  return narrowest;
}

/// Whether all flows of each round of a group have the same latency and narrowest link.
bool is_uniform(const Machine& machine, const FlowTable& table, const FlowGroup& group) {
  const Flow* first = nullptr;
  for (std::uint32_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f) {
    const Flow& flow = table.flows[f];
    if (!first || first->round != flow.round) {
      first = &flow;
    } else if (flow.latency_s != first->latency_s ||
               narrowest_Bps(machine, table, flow) != narrowest_Bps(machine, table, *first)) {
      return false;
    }
  }
  return true;
}

bool automatic_is_chunk(const Plan& plan, const Machine& machine, const FlowTable& table,
                        std::size_t pattern) {
  for (std::uint32_t g = table.first_group[pattern]; g < table.first_group[pattern + 1]; ++g) {
    const FlowGroup& group = table.groups[g];
    if (plan.patterns[pattern].groups[group.index].size() <= chunk_ranks_limit &&
        !is_uniform(machine, table, group))
      return true;
  }
  return false;
}

}  // namespace

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
        set(comm.pattern, automatic_is_chunk(plan, machine, table, comm.pattern) ? one_by_one : in_step);
    }
  }
  std::vector<bool> result(mode.size());
  std::transform(mode.begin(), mode.end(), result.begin(), [](char m) { return m == one_by_one; });
  return result;
}

}  // namespace convoy
