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

/// Numbers for all that a folding tells apart: endpoints from 0, then FlowTable::flows, FlowTable::groups,
/// links, ends of FlowTable::all_to_all (of each its senders, then its receivers), and FlowTable::peers, all
/// of them first as senders, then as receivers.
struct ThingNumbers {
  ThingNumbers(const Machine& machine, const FlowTable& table);

  std::uint32_t flows, groups, links, ends, peers;  ///< the first of each kind
  std::uint32_t count;
  std::vector<std::uint32_t> first_end;  ///< by FlowTable::all_to_all
};

/// A partition of things; equal numbers are of one class, and things of two kinds never are.
struct ThingClasses {
  ThingNumbers numbers;
  std::vector<std::uint32_t> class_of;

  using Span = std::span<const std::uint32_t>;
  Span endpoints() const { return part(0, numbers.flows); }
  Span flows() const { return part(numbers.flows, numbers.groups); }
  Span groups() const { return part(numbers.groups, numbers.links); }
  Span links() const { return part(numbers.links, numbers.ends); }
  Span ends() const { return part(numbers.ends, numbers.peers); }
  Span peers() const { return part(numbers.peers, numbers.count); }

 private:
  Span part(std::uint32_t first, std::uint32_t last) const { return {class_of.data() + first, last - first}; }
};

/// The coarsest equitable partition (Folding). Ends of all-to-alls are of one class where their shares, their
/// halves of the way, their groups and, where ranks go one by one, their endpoints are: then so are their
/// messages to ends of one class. Ends of one class have peers of one class, and peers of one class have as
/// many ends of every class: so connections between peers of the same two classes carry the same.
/// @param one_by_one by pattern
ThingClasses refined_classes(const Plan& plan, const Machine& machine, const FlowTable& table,
                             const std::vector<bool>& one_by_one, const Disturbances& disturbances);

}  // namespace convoy::replays
