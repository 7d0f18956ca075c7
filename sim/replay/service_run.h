// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/replay/input_queue.h"
#include "sim/replay/parameter_servers.h"
#include "sim/replay/program_runner.h"
#include "sim/replay/steady_state.h"

namespace convoy::inline replays {

/// Executes a plan with a service: clients repeat their programs until every one has been measured.
class ServiceRun final : ProgramRunner {
 public:
  ServiceRun(const FoldedPlan& folded, const Surroundings& surroundings, const Measurement& measurement = {});
  Execution run();
  /// Steps of all client classes together, until the measurement was over.
  std::uint64_t steps_measured() const { return steps_measured_; }

 private:
  void start_message(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm) override {
    desk_.start(endpoint_class, id, kind, comm);
  }
  void task_ended(std::uint32_t endpoint_class, TaskId id) override;
  void begin_step(std::uint32_t endpoint_class);
  void end_step(std::uint32_t endpoint_class);
  double images_at_s(std::uint32_t endpoint_class);
  Readings all_readings();
  bool is_logged_further() const;
  void add_client(std::uint32_t endpoint_class, Execution& execution);
  Execution result();

  ParameterServers desk_;
  ServiceLog* log_;          ///< may be nullptr
  Measurement measurement_;
  std::uint64_t steps_ = 0;           ///< of all client classes together
  std::uint64_t steps_measured_ = 0;  ///< of these, until the measurement was over
  SteadyState steady_;
  Readings open_, closed_;                      ///< when the measurement begins and ends
  std::vector<std::vector<TaskTimes>> shown_;   ///< by endpoint class: the step that timelines show
  std::map<std::uint32_t, InputQueue> inputs_;  ///< by client class
  std::vector<double> input_wait_s_;            ///< by endpoint class, since the beginning
};

}  // namespace convoy::replays
