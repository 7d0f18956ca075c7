// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>

#include "sim/replay/message_groups.h"
#include "sim/replay/program_runner.h"
#include "sim/replay/repeated_periods.h"
#include "sim/replay/uncontended_collectives.h"

namespace convoy::inline replays {

/// Executes a plan without service: every program once, from its beginning to its end, with what it leaves out.
class StepRun final : ProgramRunner {
 public:
  StepRun(const FoldedPlan& folded, const Surroundings& surroundings);
  Execution run();

 private:
  void start_message(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm) override {
    messages_.start(endpoint_class, id, kind, comm);
  }
  void task_ended(std::uint32_t endpoint_class, TaskId id) override;
  void show_one_step(Execution& execution) const;

  std::unique_ptr<UncontendedCollectives> uncontended_;
  MessageGroups messages_;
  Readings readings_without_slowdown();

  std::optional<StepWatch> watch_;          ///< of an endless run
  std::optional<RepeatedPeriods> periods_;  ///< where programs leave periods out
};

}  // namespace convoy::replays
