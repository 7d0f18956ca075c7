// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/replica_program.h"
#include "strategies/hybrid/hybrid_messages.h"
#include "strategies/hybrid/hybrid_schedule.h"

namespace convoy {

/// The program of one device of a hybrid group on one stage: its shares of the schedule's steps, micro-batch
/// by micro-batch forward and backward in any order, the exchanges of tensors, the sums of gradients, the
/// update.
class HybridProgram {
 public:
  enum Stream : int { computing, summing, exchanging, receiving, sending_activations, sending_gradients };

  /// @param role gets the program
  /// @param device of a group, by position
  HybridProgram(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                const HybridSchedule& schedule, const HybridMessages& messages, const Plan& plan,
                bool overlap, const std::vector<std::uint32_t>& stages, std::uint32_t stage,
                std::size_t device, Role& role);

  /// Appends a pass, which runs after `after`.
  /// @param task what its last task is called; "": the pass after it may go into the same task
  /// @return the task at whose end it is done, where it has a name
  TaskId add_pass(const Pass& pass, const std::vector<TaskId>& after, std::string task);

  /// The task of an exchange of the pass that was added last; nothing where nothing is sent.
  std::vector<TaskId> task_of_exchanges(const std::vector<std::uint32_t>& exchanges) const;

  /// Appends the sums that are left, and the update.
  void update();

 private:
  TaskId add_collective(Stream stream, CommId comm, std::vector<TaskId> after);
  PlanOp operation(const HybridSchedule::Step& step, const std::string& suffix) const;
  void add_step(std::uint32_t step, const Pass& pass);

  const TrainingGraph& graph_;
  const std::vector<LayerSharding>& shardings_;
  const HybridSchedule& schedule_;
  const HybridMessages& messages_;
  const Plan& plan_;
  bool overlap_;
  const std::vector<std::uint32_t>& stages_;  ///< by layer
  std::uint32_t stage_;
  std::size_t device_;
  Role& role_;
  ComputeTasks tasks_;
  std::vector<std::uint32_t> steps_[2];             ///< of the stage's forward pass, and of its backward pass
  std::vector<std::vector<std::uint32_t>> starts_;  ///< by step: exchanges that begin when it is done
  /// By time (HybridSchedule::Copy).
  std::map<std::uint32_t, std::vector<MemoryDelta>> allocates_, frees_;
  std::vector<TaskId> task_of_;  ///< by exchange, of the micro-batch under way
  std::vector<CommId> comms_;    ///< the same
  std::vector<TaskId> summed_;
  std::size_t next_sum_ = 0;
  TaskId last_ = 0;  ///< the end of the last pass
};

}  // namespace convoy
