// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy {

/// Operations that a role runs one after the other, as compute tasks: one task until something else waits for
/// an operation, or an operation waits for something else.
class ComputeTasks {
 public:
  explicit ComputeTasks(Role& role) : role_(role) {}

  void add(PlanOp op);
  /// The same of an operation that only allocates or frees: tasks are not named after it.
  void add_memory(PlanOp op);
  /// What is added from now on runs after `task`.
  void wait_for(TaskId task);
  /// Ends the task under way, if any; a role that has computed nothing yet gets a task without operations.
  /// @param name "": after its last operation
  /// @return the task at whose end all operations so far are done
  TaskId close(std::string name = {});

 private:
  Role& role_;
  std::vector<PlanOp> ops_;
  std::vector<TaskId> after_;
  std::string last_op_;  ///< of those under way
  TaskId last_ = 0;      ///< the task that was closed last
  bool any_ = false;     ///< there is one
};

}  // namespace convoy
