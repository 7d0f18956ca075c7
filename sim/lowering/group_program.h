// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/lowering/device_stage.h"
#include "sim/lowering/exchanges.h"
#include "sim/lowering/replica_program.h"

namespace convoy::inline lowering {

/// The program of one device of a group on one stage: its shares of the schedule's steps and the exchanges of
/// tensors, with the forward and backward passes of micro-batches in any order. Gradients are summed, and
/// weights updated, together with the devices that have replicas of the same weights (ReplicaProgram).
class GroupProgram : private PassMessages {
 public:
  enum Stream : int { computing, summing, exchanging, receiving, sending_activations, sending_gradients };

  /// What all devices have in common.
  struct Shared {
    const TrainingGraph& graph;
    const std::vector<LayerSharding>& shardings;
    const GraphSchedule& schedule;
    const ExchangeComms& exchanges;
    const Plan& plan;
    const std::vector<std::uint32_t>& stages;  ///< by layer
    PartLayouts* layouts = nullptr;            ///< of the schedule, if operations are to say what they mean
  };

  /// @param device its position in the group
  /// @param replicas the groups with replicas of its weights of which it is a member
  /// @param passes all passes that it will run, in order
  /// @param role the role that gets the program
  GroupProgram(const Shared& shared, std::uint32_t stage, std::size_t device,
               std::vector<GroupSync*> replicas, const std::vector<Pass>& passes, Role& role);

  /// As ReplicaProgram::next_pass.
  TaskId next_pass(const Pass& pass, const std::vector<TaskId>& after, std::string task);

  /// The tasks of exchanges of the pass that was added last; nothing where nothing is sent.
  std::vector<TaskId> tasks_of(const std::vector<std::uint32_t>& exchanges) const;

  /// Appends the sums of gradients that are left, and the update, which end the program.
  void update() {
    program_.update("");
    program_.end();
  }

 private:
  static constexpr std::uint32_t none = GraphSchedule::none;

  const std::vector<CommId>& comms() const {
    return shared_.exchanges[static_cast<std::size_t>(micro_batch_)];
  }
  void before(const Pass& pass, std::size_t position, ComputeTasks& tasks) override;
  void after(const Pass& pass, std::size_t position, ComputeTasks& tasks) override;
  void mean(const Pass& pass, std::size_t position, OpMeaning& meaning) const override;
  void mean_update(std::size_t position, OpMeaning& meaning) const override;

  Shared shared_;
  Role& role_;
  std::vector<std::vector<std::uint32_t>> starts_;  ///< by step: exchanges that begin when it is done
  std::vector<TaskId> task_of_;                     ///< by exchange, of the micro-batch under way
  std::int64_t micro_batch_ = 0;                    ///< under way
  DeviceStage own_;
  ReplicaProgram program_;
};

}  // namespace convoy::lowering
