// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy {

/// Operations that a role runs one after the other, as compute tasks: one task until something else waits for
/// an operation, or an operation waits for something else.
class ComputeTasks {
 public:
  explicit ComputeTasks(Role& role) : role_(role) {}

  /// @return its position among all operations that were added
  std::size_t add(PlanOp op);
  /// The same of an operation that only allocates or frees: tasks are not named after it.
  std::size_t add_memory(PlanOp op);
  /// What is added from now on runs after `task`.
  void wait_for(TaskId task);
  /// Ends the task under way, if any; a role that has computed nothing yet gets a task without operations.
  /// @param name "": after its last operation
  /// @return the task at whose end all operations so far are done
  TaskId close(std::string name = {});

  /// What is added from now on waits for a message, which the device takes when `after` is done.
  void receive(const Plan& plan, CommId comm, std::vector<TaskId> after = {});
  /// Sends a message when all operations so far are done. @return the task at whose end it has been delivered
  TaskId send(const Plan& plan, CommId comm);

 private:
  Role& role_;
  std::vector<PlanOp> ops_;
  std::vector<TaskId> after_;
  std::string last_op_;    ///< of those under way
  TaskId last_ = 0;        ///< the task that was closed last
  bool any_ = false;       ///< there is one
  std::size_t count_ = 0;  ///< operations so far
};

}  // namespace convoy
