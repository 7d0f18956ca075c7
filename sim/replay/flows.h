// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy {

/// One pair of one round of one group of a pattern, with its way through the machine.
struct Flow {
  std::uint32_t group;  ///< index into FlowTable::groups
  std::uint32_t round;
  EndpointId from, to;
  double fraction;  ///< of the communication's bytes, each repetition
  double latency_s;
  std::uint32_t first_link,
      link_count;  ///< into FlowTable::links; 0 links: sender and receiver are in one place
};

struct FlowGroup {
  std::uint32_t pattern;
  std::uint32_t index;  ///< in Pattern::groups
  std::uint32_t first_flow, flow_count;
};

/// All flows that the plan's patterns can start, whatever communication starts them. Flows of a group stand
/// together, ordered by round.
struct FlowTable {
  std::vector<Flow> flows;
  std::vector<LinkId> links;
  /// Connections that limit their flows: what Route::connection names, each a link beyond the machine's
  /// (machine.links.size() + index) in `links`. Capacities.
  std::vector<double> connections_Bps;
  std::vector<FlowGroup> groups;
  std::vector<std::uint32_t> first_group;  ///< of each pattern, and one past the last

  std::span<const LinkId> route(const Flow& flow) const {
    return {links.data() + flow.first_link, flow.link_count};
  }
};

/// Of a link of the machine, or of a connection.
double bandwidth_Bps(const Machine& machine, const FlowTable& table, LinkId link);

FlowTable expand_flows(const Plan& plan, const Machine& machine);

/// For each pattern: whether its ranks go on one by one (a send/receive pattern, or a collective replayed as
/// chunks) or all ranks of a group in step (fluid). `automatic` becomes fluid where that is the same: every
/// rank has as many messages in every round, all messages of a round are equal and get equally much of their
/// links, and nothing else is on these links at the time; and where there would be more than a million
/// messages, counted before folding.
/// @throws std::logic_error when communications of one pattern ask for different fidelities.
std::vector<bool> ranks_go_one_by_one(const Plan& plan, const Machine& machine, const FlowTable& table);

/// For each pattern: whether nothing else is on the links of a group's flows, nor on those that go the other
/// way through the same ports, while the group does a communication whose ranks go in step.
std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table);

}  // namespace convoy
