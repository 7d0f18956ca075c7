// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// What is wrong with a plan, for people.
struct Refuted : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// What of a plan the rules do not speak of.
struct NotCovered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What must be over before what in a role's program. Compute tasks follow one another (stream 0); their
/// places are counted from 0.
struct RoleOrder {
  /// @throws NotCovered: a task computes on another stream
  explicit RoleOrder(const Role& role);

  /// Whether `task` has ended whenever `later` begins, by what the program says.
  bool precedes(TaskId task, TaskId later) const;

  std::vector<std::uint32_t> begins;  ///< by task: so many compute tasks are over when it begins, at least
  std::vector<std::uint32_t> ends;    ///< by task: the first place that begins after its end for certain
  std::vector<std::vector<TaskId>> next;  ///< by task: those that wait for it
  std::vector<std::uint32_t> waits;       ///< by task: for how many others
};

/// All programs of a plan, with its messages.
class HappensBefore {
 public:
  explicit HappensBefore(const Plan& plan);

  const RoleOrder& of(std::size_t role) const { return roles_[role]; }

  /// Calls `visit(role, task)` for every task after those that must be over before it begins, and for a
  /// receive after the sends of what it gets, or where a service answers, after the role's own push. @throws
  /// Refuted where tasks wait for each other or for what nobody sends
  void for_each(const Machine& machine, const std::function<void(std::uint32_t, TaskId)>& visit) const;

 private:
  const Plan& plan_;
  std::vector<RoleOrder> roles_;
};

/// What an operation of the plan means that is one of the training graph; else nullptr.
const OpMeaning* meaning_in_graph(const Meaning& meaning, const PlanOp& op);

/// "n0 and 7 more"
std::string name_of(const Role& role, const Machine& machine);
/// "n0 and 7 more, task 'update'"
std::string name_of(const Role& role, TaskId task, const Machine& machine);

}  // namespace convoy::prove
