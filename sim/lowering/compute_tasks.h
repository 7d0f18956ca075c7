// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/lowering/liveness.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Turns the operations that a role runs one after the other into compute tasks. A task ends where something
/// else waits for an operation, or where an operation waits for something else. Buffers whose users become
/// known only while the tasks are made, such as those of messages, are kept here until place_tensors().
class ComputeTasks {
 public:
  explicit ComputeTasks(Role& role) : role_(role) {}

  /// @return its position among all operations that were added
  std::size_t add(PlanOp op);
  /// The same for an operation after which no task is named: it only allocates or frees memory, or prepares a
  /// message.
  std::size_t add_unnamed(PlanOp op);
  /// Sets the meaning of the operation that was added last.
  void mean(Meaning& all, OpMeaning meaning);
  /// Operations that are added from now on run after `task`.
  void wait_for(TaskId task);
  /// Ends the task under way, if any; a role that has computed nothing yet gets a task without operations.
  /// @param name "": after its last operation
  /// @return the task at whose end all operations so far are done
  TaskId close(std::string name = {});

  /// Adds a tensor without users. @return its number, for the two functions below
  std::size_t hold(MemoryDelta memory);
  /// The operation that was added last writes or reads the tensor.
  void use(std::size_t tensor) { tensors_.at(tensor).life.use(count_ - 1); }
  /// Runs the liveness pass over the kept tensors. @pre all their users are known, and no task is under way
  void place_tensors();

  /// Operations that are added from now on wait for a message, which the device receives when `after` is
  /// done.
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
  std::vector<TaskId> closed_;
  std::vector<LiveTensor<MemoryDelta>> tensors_;  ///< positions count the operations of `closed_`
};

}  // namespace convoy::lowering
