// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/lowering/replica_program.h"
#include "sim/lowering/server_messages.h"

namespace convoy::inline lowering {

/// Connects the passes of a worker with the messages of parameter servers: which operations wait for
/// parameters, and which complete the gradients of a message.
class ServedPasses final : public PassMessages {
 public:
  /// @param pulled by message: the task at whose end its parameters have arrived; empty: they have arrived
  /// before
  /// @param meaning gets the meaning of compressing messages, if that is asked for
  ServedPasses(const TrainingGraph& graph, const Stage& stage, const ServerMessages& messages, bool overlap,
               const std::vector<TaskId>& pulled, Meaning* meaning)
      : stage_(stage),
        meaning_(meaning),
        compressor_(messages.compressor()),
        waits_(graph.operations.size()),
        completes_(graph.operations.size()),
        ready_(messages.size()),
        compressed_(messages.size()) {
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const PushMessage& message = messages.all()[m];
      bytes_.push_back(message.bytes);
      if (!pulled.empty()) waits_[message.first_use].push_back(pulled[m]);
      completes_[overlap ? message.ready : stage.backward.back().op].push_back(m);
    }
  }

  void before(const Pass& pass, std::size_t position, ComputeTasks& tasks) override {
    if (const OpId op = operation(pass, position); pass.micro_batch == 0 && op != StageOp::none)
      for (const TaskId task : waits_[op]) tasks.wait_for(task);
  }
  void after(const Pass& pass, std::size_t position, ComputeTasks& tasks) override {
    const OpId op = operation(pass, position);
    if (!pass.completes || op == StageOp::none) return;
    for (const std::size_t m : completes_[op]) {
      if (!compressor_.active()) continue;
      compressed_[m] = compressor_.add_compression(tasks, m, bytes_[m]);
      if (meaning_)
        tasks.mean(*meaning_, {.act = OpMeaning::Act::compress, .bucket = static_cast<std::uint32_t>(m)});
    }
    for (const std::size_t m : completes_[op]) ready_[m] = tasks.close();
  }

  /// The task at whose end a message's gradients are complete.
  TaskId ready(std::size_t m) const { return ready_[m]; }
  /// The gradients of a message in the form in which they are sent, if the compressor is active.
  std::size_t compressed(std::size_t m) const { return compressed_[m]; }

 private:
  OpId operation(const Pass& pass, std::size_t position) const {
    return (pass.backward ? stage_.backward : stage_.forward)[position].op;
  }

  const Stage& stage_;
  Meaning* meaning_;  ///< may be nullptr
  const Compressor& compressor_;
  std::vector<double> bytes_;
  std::vector<std::vector<TaskId>> waits_;           ///< by operation
  std::vector<std::vector<std::size_t>> completes_;  ///< by operation: messages
  std::vector<TaskId> ready_;
  std::vector<std::size_t> compressed_;
};

}  // namespace convoy::lowering
