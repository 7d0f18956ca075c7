// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Which endpoints, flows, groups and links behave the same throughout the replay, so that one of each class
/// is simulated.
///
/// The classes are the coarsest equitable partition (colour refinement) of the plan on its machine:
///   endpoints of a class run the same program at the same speed, and send and receive over equal paths;
///   paths (FlowPath: all flows of a group from one endpoint to another) of a class have flows of equal
///   rounds and sizes, equal latencies, ends of equal classes, and cross links of equal classes;
///   links of a class have equal capacity and are crossed by equally many paths of every class.
/// Flows are of one class where their paths, rounds and sizes are. (Collectives of many rounds, trees above
/// all, have many flows a path: refining paths takes as long as if they had one round.)
/// Max-min sharing treats equal flows on equal links alike: its solution is unique, and averaging a solution
/// over a class gives a feasible one that is no worse. So members of a class do the same at the same time,
/// and if the representative of a link is charged with every flow class as often as the link is crossed by
/// it, each flow gets its exact rate. Classes are distinguished by 64-bit hashes of their neighbourhoods.
struct Folding {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> endpoint_class;  ///< by endpoint; none for endpoints without a role
  std::vector<EndpointId> endpoints;          ///< representative by class
  std::vector<std::uint32_t> endpoint_role;   ///< by class

  std::vector<std::uint32_t> flow_class;  ///< by FlowTable::flows; those of all_to_all have classes too
  std::vector<Flow> flows;                ///< by class: one of its flows
  /// Classes from this one on are of FlowTable::all_to_all. All of their flows are between hosts; the ends of
  /// the one in `flows` are any two of their classes, and may be on one host.
  std::uint32_t listed = 0;
  std::vector<std::vector<LinkUse>> flow_route;  ///< by class; LinkUse::link is a link class

  std::vector<std::uint32_t> group_class;               ///< by FlowTable::groups
  std::vector<std::uint32_t> groups;                    ///< representative by class
  std::vector<std::vector<std::uint32_t>> group_flows;  ///< by class: flow classes of its representative

  /// By link of the machine, then by connection of the flow table; none for links that no flow crosses
  std::vector<std::uint32_t> link_class;
  /// Representative by class, followed by link_of_peers for each class of connections between peers.
  std::vector<LinkId> links;
};

/// For each flow of a plan with a service: the flow that answers it, or the flow that it answers.
std::vector<std::uint32_t> answers(const Plan& plan, const FlowTable& table);

/// @param one_by_one by pattern: true if ranks wait only for their own messages, so that flows and their ends
/// have to be distinguished from each other; if false, only the group as a whole matters.
/// @param fold false puts every object into a class of its own.
Folding fold(const Plan& plan, const Machine& machine, const FlowTable& table,
             const std::vector<bool>& one_by_one, bool fold, const Disturbances& disturbances = {});

}  // namespace convoy::replays
