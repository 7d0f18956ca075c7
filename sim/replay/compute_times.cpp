// SPDX-License-Identifier: MIT
#include "sim/replay/compute_times.h"

#include <utility>

#include "sim/plan/program_times.h"

namespace convoy::inline replays {

namespace {

std::vector<IssuedStretch> stretches_of(const TimedProgram& timed) {
  const DeviceType& type = timed.device;
  const CostModel& cost = timed.cost;
  const std::uint32_t beside = timed.devices_of_host;
  std::vector<IssuedStretch> result;
  double issued_s = cost.begin_s(type);
  TimedProgram alone = timed;  // times do not depend on the devices beside
  alone.devices_of_host = 1;
  const std::shared_ptr<const std::vector<double>> times_s = program_times_s(alone);
  auto next_s = times_s->begin();
  for (TaskId t = 0; t < timed.program.size(); ++t) {
    const Task& task = timed.program[t];
    if (task.begins_step) issued_s = cost.begin_s(type);
    IssuedStretch& stretch = result.emplace_back(issued_s);
    const auto first_s = next_s;
    const auto add_operations = [&] {
      next_s = first_s;
      for (const PlanOp& op : task.ops)
        stretch.add(cost.issue_s(op.work, op.images, type, beside), *next_s++);
    };
    add_operations();
    if (timed.repeats && t + 1 == timed.repeats->end()) {
      const auto between = static_cast<double>(timed.repeats->left_out - 1);
      stretch.skip(between * (stretch.issued_s() - issued_s), between * stretch.device_s());
      add_operations();
    }
    issued_s = stretch.issued_s();
  }
  return result;
}

std::shared_ptr<const std::vector<IssuedStretch>> kept_stretches(const TimedProgram& timed) {
  static thread_local ProgramMemo<TimedProgram, std::shared_ptr<const std::vector<IssuedStretch>>> memo;
  return memo.of(timed, [](const TimedProgram& of) {
    return std::make_shared<const std::vector<IssuedStretch>>(stretches_of(of));
  });
}

}  // namespace

TaskWork ComputeTimes::work(EndpointId endpoint, std::uint32_t role, TaskId task, double stretch) {
  if (endpoint >= machine_.devices.size()) return {plan_.roles[role].program[task].seconds};
  const Device& device = machine_.devices[endpoint];
  const IssuedStretch& issued = stretches(role, device)[task];
  return {issued.device_s(), plan_.roles[role].slowdown * stretch / device.speed,
          issued.issued_s() > 0 ? &issued : nullptr};
}

/// Compute tasks of a role's program on a type of device in a host with this many devices: the host issues
/// them in their order.
const std::vector<IssuedStretch>& ComputeTimes::stretches(std::uint32_t role, const Device& device) {
  const std::uint32_t beside = devices_of_host(machine_, device);
  const auto key = std::tuple{role, device.type, beside};
  auto it = stretches_.find(key);
  if (it == stretches_.end()) {
    const CostModel& cost = cost_of_role_.empty() ? cost_ : *cost_of_role_[role];
    TimedProgram timed{{plan_.roles[role].program}, machine_.device_types[device.type], cost, beside};
    if (stands_for_left_out_) timed.repeats = plan_.roles[role].repeats;
    it = stretches_.emplace(key, kept_stretches(timed)).first;
  }
  return *it->second;
}

std::vector<double> operation_times_s(const Role& role, const Task& task, const Machine& machine,
                                      const CostModel& cost, EndpointId endpoint) {
  if (endpoint >= machine.devices.size()) return {task.seconds};
  const Device& device = machine.devices[endpoint];
  std::vector<double> times;
  for (const PlanOp& op : task.ops)
    times.push_back(cost.time_s(op.work, op.images, machine.device_types[device.type]) * role.slowdown /
                    device.speed);
  return times;
}

}  // namespace convoy::replays
