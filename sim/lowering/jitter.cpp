// SPDX-License-Identifier: MIT
#include "sim/lowering/jitter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "sim/plan/program_times.h"

namespace convoy::inline lowering {
namespace {

/// More different devices than this are taken together with those next to them.
constexpr std::size_t most_kinds = 256;

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// Probability that no device is still at work at x_s.
double probability_done(const std::vector<DeviceSteps>& steps, double jitter, double x_s) {
  double log_all = 0;
  for (const DeviceSteps& step : steps)
    log_all += static_cast<double>(step.devices) *
               std::log(normal_below((x_s - step.mean_s) / (jitter * step.mean_s)));
  return std::exp(log_all);
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

/// Time of all operations of a program.
double computing_s(const TimedProgram& timed) {
  const std::shared_ptr<const std::vector<double>> times_s = program_times_s(timed);
  return std::accumulate(times_s->begin(), times_s->end(), 0.0);
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
      if (fresh) it->second = computing_s({{role.program}, machine.device_types[device.type], cost});
      if (it->second > 0) ++result[it->second / device.speed];
    }
  }
  return result;
}

}  // namespace

double expected_last_s(const std::vector<DeviceSteps>& steps, double jitter) {
  // Beyond 10 standard deviations of any device everything is decided, to 1e-22.
  double low_s = 0, high_s = 0;
  for (const DeviceSteps& step : steps) {
    high_s = std::max(high_s, step.mean_s * (1 + 10 * jitter));
    low_s = std::max(low_s, step.mean_s * (1 - 10 * jitter));
  }
  constexpr int intervals = 2000;  // Simpson's rule
  const double h_s = (high_s - low_s) / intervals;
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double weight = i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * (1 - probability_done(steps, jitter, low_s + i * h_s));
  }
  return low_s + sum * h_s / 3;
}

void wait_for_the_last(Plan& plan, const Machine& machine, const CostModel& cost) {
  double jitter = machine.step_jitter;
  if (const Service* service = plan.service()) {
    if (service->max_lead == Service::unbounded) return;
    jitter /= std::sqrt(service->max_lead + 1.0);
  }
  if (jitter == 0) return;
  const std::map<double, std::size_t> times = devices_by_time(plan, machine, cost);
  std::size_t devices = 0;
  for (const auto& [time_s, count] : times) devices += count;
  if (devices < 2) return;
  const double slowest_s = times.rbegin()->first;
  const double slowdown = expected_last_s(merged(times), jitter) / slowest_s;
  for (Role& role : plan.roles)
    if (std::ranges::any_of(role.program.get(), [](const Task& task) { return !task.ops.empty(); }))
      role.slowdown = slowdown;
}

}  // namespace convoy::lowering
