// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/prove/happens_before.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// An operation of a role's program.
struct ServedStep {
  std::uint32_t place;  ///< of its task among the compute tasks
  std::size_t number;   ///< among all operations of the program
  OpId operation;
  ImageRange images{};
};

/// What a role's program does.
struct ServedRole {
  bool works = false;                                      ///< its members are devices
  std::map<std::uint32_t, std::vector<ServedStep>> reads;  ///< by layer: its parameters
  std::map<OpId, std::vector<ServedStep>> gradients;       ///< by operation that completes some of parameters
  std::map<std::uint32_t, std::vector<ServedStep>> compressed;    ///< by bucket
  std::map<std::uint32_t, std::vector<TaskId>> serves, collects;  ///< by bucket
  std::map<CommId, TaskId> sends, receives, joins;
};

/// Of a plan with parameter servers. @throws Refuted where a worker updates parameters itself, NotCovered
ServedRole served_role(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                       const RoleOrder& order, std::uint32_t r);

/// The task that has to do with a communication, or with the first of several that any has to do with.
std::optional<TaskId> task_in(const std::map<CommId, TaskId>& tasks, std::optional<CommId> comm);
std::optional<TaskId> task_in(const std::map<CommId, TaskId>& tasks, const std::vector<CommId>& comms);

}  // namespace convoy::prove
