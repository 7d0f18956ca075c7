// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/input_queue.h"
#include "sim/replay/message_groups.h"
#include "sim/replay/program_runner.h"

namespace convoy::inline replays {

/// One of the jobs of a SideBySideRun: the roles and communications of the joint plan that are its own.
struct JobInPlan {
  std::uint32_t past_last_role = 0;
  CommId first_comm = 0, past_last_comm = 0;
  double start_s = 0;                  ///< when it begins its first step
  std::uint64_t sequence = 0;          ///< of random numbers, from which its compute times are drawn
  std::vector<InputQueue> input = {};  ///< by host that prepares images for it
  std::uint64_t most_steps = 0;        ///< it does no more; 0: as long as others have not done theirs
};

/// Executes jobs that begin their next step whenever all their own devices have done the last one.
class SideBySideRun final : ProgramRunner {
 public:
  /// @param least_steps that every job does
  SideBySideRun(const FoldedPlan& folded, const Surroundings& surroundings, std::vector<JobInPlan> jobs,
                std::uint64_t least_steps);
  /// By job, when each of its steps ended. @throws std::runtime_error that names the blocked tasks
  std::vector<std::vector<double>> run();

 private:
  void start_message(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm) override {
    messages_.start(endpoint_class, id, kind, comm);
  }
  void task_ended(std::uint32_t endpoint_class, TaskId id) override;
  void begin_step(std::size_t job);
  void begin_programs(std::size_t job);
  bool goes_on(std::size_t job) const;

  MessageGroups messages_;
  std::vector<JobInPlan> jobs_;
  std::uint64_t least_steps_;
  std::vector<std::size_t> job_of_;                  ///< by endpoint class
  std::vector<std::vector<std::uint32_t>> classes_;  ///< by job
  std::vector<std::uint32_t> classes_left_;          ///< by job: that have not done their programs
  std::vector<std::vector<double>> ends_s_;          ///< by job
  std::size_t jobs_left_;                            ///< with fewer than least_steps
};

}  // namespace convoy::replays
