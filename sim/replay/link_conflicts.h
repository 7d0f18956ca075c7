// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// For each pattern: whether something else may be on its links, or in places that consist of several links
/// each, while one of its communications is under way. Communications of the same endpoints on one stream
/// follow one another.
class LinkConflicts {
 public:
  /// @param place by link
  LinkConflicts(const Plan& plan, const FlowTable& table, const std::function<std::uint32_t(LinkId)>& place);
  bool operator()(std::size_t pattern) const { return meets_[pattern]; }

 private:
  static constexpr int unused = -2, no_order = Task::no_stream;

  void add(std::uint32_t pattern, const Task& task);
  void meet_in_places(const Plan& plan, const FlowTable& table,
                      const std::function<std::uint32_t(LinkId)>& place);

  std::vector<int> stream_;  ///< by pattern
  std::vector<bool> meets_;
};

/// For each pattern: whether, during a communication of a group whose ranks proceed in step, nothing else is
/// on the links of the group's flows, nor on the links in the opposite direction of the same ports.
std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table);

}  // namespace convoy::replays
