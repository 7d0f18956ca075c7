// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/flows.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Which collectives of a plan follow one another because every program that has both waits for one of them
/// before it begins the other, directly or by what is between them. Of programs with very many collectives
/// nothing is known.
class CollectiveOrder {
 public:
  explicit CollectiveOrder(const Plan& plan);
  /// Whether every communication of a pattern comes before or after every one of another pattern.
  bool operator()(std::uint32_t pattern, std::uint32_t other) const;

 private:
  void add(const Plan& plan, const std::vector<Task>& program);

  bool is_known_ = true;
  /// Pairs of patterns: communications that follow one another, and that may be under way at once.
  std::set<std::pair<std::uint32_t, std::uint32_t>> apart_, together_;
};

/// For each pattern: whether something else may be on its links, or in places that consist of several links
/// each, while one of its communications is under way. Communications of the same endpoints on one stream
/// follow one another.
class LinkConflicts {
 public:
  /// @param place by link
  /// @param order of communications of the same endpoints on different streams; nullptr: they have none
  LinkConflicts(const Plan& plan, const FlowTable& table, const std::function<std::uint32_t(LinkId)>& place,
                const CollectiveOrder* order = nullptr);
  bool operator()(std::size_t pattern) const { return meets_[pattern]; }

 private:
  static constexpr int unused = -2, no_order = Task::no_stream;

  void add(std::uint32_t pattern, const Task& task);
  void meet_in_places(const Plan& plan, const FlowTable& table,
                      const std::function<std::uint32_t(LinkId)>& place, const CollectiveOrder* order);

  std::vector<int> stream_;  ///< by pattern
  std::vector<bool> meets_;
};

/// For each pattern: whether, during a communication of a group whose ranks proceed in step, nothing else is
/// on the links of the group's flows, nor on the links in the opposite direction of the same ports.
std::vector<bool> has_links_for_itself(const Plan& plan, const Machine& machine, const FlowTable& table);

}  // namespace convoy::replays
