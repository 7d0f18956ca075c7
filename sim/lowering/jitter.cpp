// SPDX-License-Identifier: MIT
#include "sim/lowering/jitter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace convoy::inline lowering {
namespace {

/// More different devices than this are taken together with those next to them.
constexpr std::size_t most_kinds = 256;

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// Probability that no more than `left_out` devices are still at work at x_s.
double probability_done(const std::vector<DeviceSteps>& steps, double jitter, std::size_t left_out,
                        double x_s) {
  if (left_out == 0) {
    double log_all = 0;
    for (const DeviceSteps& step : steps)
      log_all += static_cast<double>(step.devices) *
                 std::log(normal_below((x_s - step.mean_s) / (jitter * step.mean_s)));
    return std::exp(log_all);
  }
  std::vector<double> late(left_out + 1, 0.0);  // by number: probability that so many are still at work
  late[0] = 1;
  for (const DeviceSteps& step : steps) {
    const double busy = normal_below((step.mean_s - x_s) / (jitter * step.mean_s));
    for (std::size_t d = 0; d < step.devices; ++d)
      for (std::size_t k = late.size(); k-- > 0;)
        late[k] = late[k] * (1 - busy) + (k > 0 ? late[k - 1] * busy : 0);
  }
  double sum = 0;
  for (const double probability : late) sum += probability;
  return sum;
}

std::vector<DeviceSteps> merged(const std::map<double, std::size_t>& devices_by_time) {
  std::vector<DeviceSteps> steps;
  const std::size_t together = (devices_by_time.size() + most_kinds - 1) / most_kinds;
  std::size_t kind = 0;
  for (const auto& [time_s, devices] : devices_by_time) {
    if (kind++ % together == 0) steps.push_back({0, 0});
    DeviceSteps& last = steps.back();
    const double before = static_cast<double>(last.devices), more = static_cast<double>(devices);
    last.mean_s = (last.mean_s * before + time_s * more) / (before + more);
    last.devices += devices;
  }
  return steps;
}

/// Mean time that the operations of a step take every device, without waiting.
std::map<double, std::size_t> devices_by_time(const Plan& plan, const Machine& machine,
                                              const CostModel& cost) {
  std::map<double, std::size_t> result;
  for (const Role& role : plan.roles) {
    std::map<std::uint32_t, double> of_type;
    for (const EndpointId member : role.members) {
      if (member >= machine.devices.size()) continue;
      const Device& device = machine.devices[member];
      const auto [it, fresh] = of_type.emplace(device.type, 0.0);
      if (fresh)
        for (const Task& task : role.program)
          for (const PlanOp& op : task.ops)
            it->second += cost.time_s(op.work, op.images, machine.device_types[device.type]);
      if (it->second > 0) ++result[it->second / device.speed];
    }
  }
  return result;
}

}  // namespace

double expected_last_s(const std::vector<DeviceSteps>& steps, double jitter, std::size_t left_out) {
  // Beyond 10 standard deviations of any device everything is decided, to 1e-22.
  double low_s = 0, high_s = 0;
  for (const DeviceSteps& step : steps) {
    high_s = std::max(high_s, step.mean_s * (1 + 10 * jitter));
    low_s = left_out == 0 ? std::max(low_s, step.mean_s * (1 - 10 * jitter)) : low_s;
  }
  if (left_out > 0) {
    low_s = high_s;
    for (const DeviceSteps& step : steps) low_s = std::min(low_s, step.mean_s * (1 - 10 * jitter));
  }
  constexpr int intervals = 2000;  // Simpson's rule
  const double h_s = (high_s - low_s) / intervals;
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double weight = i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * (1 - probability_done(steps, jitter, left_out, low_s + i * h_s));
  }
  return low_s + sum * h_s / 3;
}

void wait_for_the_last(Plan& plan, const Machine& machine, const CostModel& cost) {
  double jitter = machine.step_jitter;
  std::size_t left_out = 0;
  if (plan.service()) {
    const Service& service = *plan.service();
    if (service.quorum > 0)
      left_out = service.clients.size() - service.quorum;
    else if (service.max_lead == Service::unbounded)
      return;
    else
      jitter /= std::sqrt(service.max_lead + 1.0);
  }
  if (jitter == 0) return;
  const std::map<double, std::size_t> times = devices_by_time(plan, machine, cost);
  std::size_t devices = 0, still = left_out;
  for (const auto& [time_s, count] : times) devices += count;
  if (devices < 2 || devices <= left_out) return;
  double without_s = 0;
  for (auto it = times.rbegin(); it != times.rend(); ++it) {
    without_s = it->first;
    if (still < it->second) break;
    still -= it->second;
  }
  const double slowdown = expected_last_s(merged(times), jitter, left_out) / without_s;
  for (Role& role : plan.roles)
    if (std::any_of(role.program.begin(), role.program.end(),
                    [](const Task& task) { return !task.ops.empty(); }))
      role.slowdown = slowdown;
}

}  // namespace convoy::lowering
