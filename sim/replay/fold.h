// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Links of each class of routes, all in one vector: a vector for each of a million classes would take three times
/// the memory of what is in it.
class ClassRoutes {
 public:
  std::size_t size() const { return first_.size(); }
  std::span<const LinkUse> operator[](std::size_t route_class) const {
    return {uses_.data() + first_[route_class], uses_.data() + past_last(route_class)};
  }
  std::span<LinkUse> operator[](std::size_t route_class) {
    return {uses_.data() + first_[route_class], uses_.data() + past_last(route_class)};
  }
  /// Begins the route of one more class.
  void add_class() { first_.push_back(static_cast<std::uint32_t>(uses_.size())); }
  /// Adds to the route of the last class.
  void push_back(const LinkUse& use) { uses_.push_back(use); }
  void reserve(std::size_t classes, std::size_t uses) {
    first_.reserve(classes);
    uses_.reserve(uses);
  }

 private:
  std::size_t past_last(std::size_t route_class) const {
    return route_class + 1 < first_.size() ? first_[route_class + 1] : uses_.size();
  }
  std::vector<std::uint32_t> first_;  ///< by class: in uses_
  std::vector<LinkUse> uses_;
};

/// Which endpoints, flows, groups and links behave the same throughout the replay, so that one of each class
/// is simulated.
///
/// The classes are the coarsest equitable partition (colour refinement) of the plan on its machine:
///   endpoints of a class run the same program at the same speed, and send and receive over equal paths;
///   paths (FlowPath: all flows of a group from one endpoint to another) of a class have flows of equal
///   rounds and sizes, equal latencies, ends of equal classes, and cross links of equal classes;
///   links of a class have equal capacity and are crossed by equally many paths of every class.
/// Flows are of one class where their paths, rounds and sizes are. (Collectives of many rounds, trees above
/// all, have many flows a path: refining paths takes as long as if they had one round.) Classes of flows on paths of
/// one class, which are of one pattern, are of one class of routes where they have equally many flows a path: their
/// messages go from the same endpoints to the same, and cross the same links as often.
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
  std::vector<std::uint32_t> first_flow;  ///< by class of FlowTable::flows: the first of them
  /// A flow of FlowTable::all_to_all, without a path in the table.
  struct UnlistedFlow {
    FlowPath path;  ///< without links
    Flow flow;
  };
  /// Of each class after these, which are of FlowTable::all_to_all: one of its flows. All of them are between hosts;
  /// the ends of this one are any two of their classes, and may be on one host.
  std::vector<UnlistedFlow> unlisted_flows;
  std::size_t flow_class_count() const { return first_flow.size() + unlisted_flows.size(); }
  bool is_listed(std::uint32_t c) const { return c < first_flow.size(); }
  /// A flow of the class. @param table of which this is the folding
  const Flow& flow(const FlowTable& table, std::uint32_t c) const {
    return is_listed(c) ? table.flows[first_flow[c]] : unlisted_flows[c - first_flow.size()].flow;
  }
  /// The path of this flow.
  const FlowPath& path(const FlowTable& table, std::uint32_t c) const {
    return is_listed(c) ? table.path(table.flows[first_flow[c]]) : unlisted_flows[c - first_flow.size()].path;
  }
  /// By class of flows; numbered in the order in which they first occur.
  std::vector<std::uint32_t> route_class;
  ClassRoutes routes;  ///< by class of routes; LinkUse::link is a link class
  /// Of a class of flows.
  std::span<const LinkUse> route(std::uint32_t c) const { return routes[route_class[c]]; }

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
