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

/// One pair of one round of one group of a pattern. There may be millions: what those of a path share is said there.
struct Flow {
  std::uint32_t path;  ///< index into FlowTable::paths
  std::uint32_t round;
  double fraction;         ///< of the communication's bytes, each repetition
  std::uint32_t pair = 0;  ///< of a round whose shares rotate: index into Round::pairs
};

/// What the flows of a group share that go from one endpoint to another with one latency, whatever their
/// rounds: they have one route through the machine.
struct FlowPath {
  std::uint32_t group;  ///< index into FlowTable::groups
  EndpointId from, to;
  double latency_s;
  std::uint32_t first_link,
      link_count;  ///< into FlowTable::links; 0 links: sender and receiver are in one place
};

struct FlowGroup {
  std::uint32_t pattern;
  std::uint32_t index;  ///< in Pattern::groups
  std::uint32_t first_flow, flow_count;
  std::uint32_t first_path, path_count;
};

/// All flows that the plan's patterns can start, whichever communication starts them. Flows of a group are
/// consecutive, ordered by round, and so are its paths, ordered by their first flows.
struct FlowTable {
  std::vector<Flow> flows;
  std::vector<FlowPath> paths;
  std::vector<AllToAllFlows> all_to_all;  ///< in addition to `flows`
  std::vector<LinkId> links;
  /// Capacities of the connections that limit their flows: those that Route::connection names. In `links`,
  /// each is a link after those of the machine (machine.links.size() + index).
  std::vector<double> connections_Bps;
  /// The number of peers to which the ends in all_to_all belong whose messages use connections. Each pair of
  /// peers has a connection in either direction, which no flow in `flows` uses.
  std::uint32_t peers = 0;
  double peer_connection_Bps = std::numeric_limits<double>::infinity();  ///< of each pair
  std::vector<FlowGroup> groups;
  std::vector<std::uint32_t> first_group;  ///< of each pattern, and one past the last

  const FlowPath& path(const Flow& flow) const { return paths[flow.path]; }
  std::span<const LinkId> route(const Flow& flow) const { return route(path(flow)); }
  std::span<const LinkId> route(const FlowPath& path) const {
    return {links.data() + path.first_link, path.link_count};
  }
  std::span<const LinkId> half(const AllToAllFlows::End& end) const {
    return {links.data() + end.first_link, end.link_count};
  }
};

/// Stands for all connections between peers: one link after all links of `table`.
LinkId link_of_peers(const Machine& machine, const FlowTable& table);

/// Bandwidth of a link of the machine, or of a connection.
double bandwidth_Bps(const Machine& machine, const FlowTable& table, LinkId link);

/// Whether the messages of rounds that are all-to-alls are listed one by one.
enum class Listing : std::uint8_t { where_needed, always };

/// @param listing `always` if messages have to be distinguished: for a folding that folds nothing
/// @param owner by pattern: those of different owners, which follow one another, have connections of their
/// own; empty: all have one owner. With Listing::always
FlowTable expand_flows(const Plan& plan, const Machine& machine, Listing listing,
                       const std::vector<std::uint32_t>& owner = {});

}  // namespace convoy::replays
