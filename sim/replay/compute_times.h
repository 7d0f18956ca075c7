// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/costs/issue_queue.h"
#include "sim/plan/plan.h"
#include "sim/plan/repetition.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// What a compute task asks of an endpoint: operations in order, each of which begins when the host has
/// issued it and the one before is done. Times count from the beginning of the step, without those for which
/// the endpoint was stopped.
struct TaskWork {
  double device_s = 0;                    ///< of the operations, on a device that is not slowed
  double slowness = 1;                    ///< they take so many times as long
  const IssuedStretch* issued = nullptr;  ///< the operations, where the device may wait for the host

  /// When all is done. @param done_s of device_s, which has been done at now_s
  /// @param rate at which operations go on from now_s, of 1
  double end_s(double now_s, double done_s = 0, double rate = 1) const {
    if (issued) return issued->end_s(now_s, slowness / rate, done_s);
    return now_s + (device_s - done_s) * slowness / rate;
  }
  /// How much of device_s has been done at until_s.
  double done_at_s(double now_s, double done_s, double until_s, double rate) const {
    if (issued) return issued->done_s(now_s, done_s, until_s, slowness / rate);
    return std::min(device_s, done_s + (until_s - now_s) * rate / slowness);
  }
};

/// How long compute tasks take on endpoints.
class ComputeTimes {
 public:
  /// @param cost_of_role by role; empty: `cost` for all
  ComputeTimes(const Plan& plan, const Machine& machine, const CostModel& cost,
               std::vector<const CostModel*> cost_of_role = {})
      : plan_(plan),
        machine_(machine),
        cost_(cost),
        cost_of_role_(std::move(cost_of_role)),
        stands_for_left_out_(leaves_only_computing_out(plan)) {}

  /// @param stretch how many times as long as usual operations last
  TaskWork work(EndpointId endpoint, std::uint32_t role, TaskId task, double stretch);

 private:
  const std::vector<IssuedStretch>& stretches(std::uint32_t role, const Device& device);

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  std::vector<const CostModel*> cost_of_role_;
  bool stands_for_left_out_;  ///< the last listed period
  /// By role, device type and number of devices of the host: what each task of the program needs.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>,
           std::shared_ptr<const std::vector<IssuedStretch>>>
      stretches_;
};

/// Time of each operation of a compute task on `endpoint` (a task of a host is one stretch of Task::seconds).
std::vector<double> operation_times_s(const Role& role, const Task& task, const Machine& machine,
                                      const CostModel& cost, EndpointId endpoint);

}  // namespace convoy::replays
