// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Numbers for all objects that a folding distinguishes: endpoints from 0, then FlowTable::paths,
/// FlowTable::groups, links, ends of FlowTable::all_to_all (for each of them its senders, then its
/// receivers), and FlowTable::peers, first all of them as senders, then as receivers.
struct NodeIds {
  NodeIds(const Machine& machine, const FlowTable& table);

  std::uint32_t paths, groups, links, ends, peers;  ///< the first of each kind
  std::uint32_t count;
  std::vector<std::uint32_t> first_end;  ///< by FlowTable::all_to_all
};

/// A partition of the objects; equal numbers mean the same class, and objects of different kinds are never in
/// one class.
struct NodeClasses {
  NodeIds numbers;
  std::vector<std::uint32_t> class_of;

  using Span = std::span<const std::uint32_t>;
  Span endpoints() const { return part(0, numbers.paths); }
  Span paths() const { return part(numbers.paths, numbers.groups); }
  Span groups() const { return part(numbers.groups, numbers.links); }
  Span links() const { return part(numbers.links, numbers.ends); }
  Span ends() const { return part(numbers.ends, numbers.peers); }
  Span peers() const { return part(numbers.peers, numbers.count); }

 private:
  Span part(std::uint32_t first, std::uint32_t last) const { return {class_of.data() + first, last - first}; }
};

/// By flow, numbered by first appearance. Flows on paths of one class are in one class if they are of one round and
/// carry one fraction. @param paths their classes, as refined_classes() has them
std::vector<std::uint32_t> flow_classes(const FlowTable& table, NodeClasses::Span paths);

/// The coarsest equitable partition (Folding). Ends of all-to-alls are in one class if their shares, their
/// halves of the route, their groups and, if ranks proceed one by one, their endpoints are: then their
/// messages to ends of one class are in one class too. Ends of one class have peers of one class, and peers
/// of one class have equally many ends of every class; therefore connections between peers of the same two
/// classes carry the same load.
/// @param one_by_one by pattern
NodeClasses refined_classes(const Plan& plan, const Machine& machine, const FlowTable& table,
                            const std::vector<bool>& one_by_one, const Disturbances& disturbances);

}  // namespace convoy::replays
