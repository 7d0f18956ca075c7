// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/all_to_all.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

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
  std::vector<AllToAllFlows> all_to_all;  ///< beside `flows`
  std::vector<LinkId> links;
  /// Connections that limit their flows: what Route::connection names, each a link beyond the machine's
  /// (machine.links.size() + index) in `links`. Capacities.
  std::vector<double> connections_Bps;
  /// Ends of all_to_all whose messages take connections are those of so many peers. Each pair of peers has a
  /// connection in either direction, which no flow of `flows` takes.
  std::uint32_t peers = 0;
  double peer_connection_Bps = std::numeric_limits<double>::infinity();  ///< of each pair
  std::vector<FlowGroup> groups;
  std::vector<std::uint32_t> first_group;  ///< of each pattern, and one past the last

  std::span<const LinkId> route(const Flow& flow) const {
    return {links.data() + flow.first_link, flow.link_count};
  }
  std::span<const LinkId> half(const AllToAllFlows::End& end) const {
    return {links.data() + end.first_link, end.link_count};
  }
};

/// Stands for every connection between peers: one link beyond all those that `table` has.
LinkId link_of_peers(const Machine& machine, const FlowTable& table);

/// Of a link of the machine, or of a connection.
double bandwidth_Bps(const Machine& machine, const FlowTable& table, LinkId link);

/// Whether rounds that are all-to-alls have their messages listed one by one.
enum class Listing : std::uint8_t { where_needed, always };

/// @param listing `always` for what tells messages apart: a folding that folds nothing
FlowTable expand_flows(const Plan& plan, const Machine& machine, Listing listing);

}  // namespace convoy::replays
