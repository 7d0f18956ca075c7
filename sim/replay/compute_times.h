// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/costs/issue_queue.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// How long compute tasks take on endpoints.
class ComputeTimes {
 public:
  ComputeTimes(const Plan& plan, const Machine& machine, const CostModel& cost)
      : plan_(plan), machine_(machine), cost_(cost) {}

  struct TaskTime {
    double time_s = 0;        ///< from the start to the end
    double issue_wait_s = 0;  ///< the part of it in which the device waits for its host to issue operations
  };
  /// The device runs the operations of the task in order, each when the host has issued it.
  /// @param start_s since the beginning of the step, without the time for which the endpoint was stopped
  /// @param stretch operations take this many times as long as usual
  TaskTime time(EndpointId endpoint, std::uint32_t role, TaskId task, double start_s, double stretch);

 private:
  const std::vector<IssuedStretch>& stretches(std::uint32_t role, const Device& device);

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  /// By role, device type and number of devices of the host: what each task of the program needs.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<IssuedStretch>> stretches_;
};

/// Time of each operation of a compute task on `endpoint` (a task of a host is one stretch of Task::seconds).
std::vector<double> operation_times_s(const Role& role, const Task& task, const Machine& machine,
                                      const CostModel& cost, EndpointId endpoint);

}  // namespace convoy::replays
