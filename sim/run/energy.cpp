// SPDX-License-Identifier: MIT
#include "sim/run/energy.h"

#include <algorithm>
#include <optional>

#include "sim/plan/program_times.h"

namespace convoy::inline runs {
namespace {

/// Share of the range between idle and peak power that an operation draws while it waits for memory. Fitted
/// to the V100 at its full power limit in results/published/energy.csv, whose other rows test it.
constexpr double memory_bound_share = 0.64;

/// Mean power of a program's operations on a device, if it has any.
std::optional<double> mean_power_w(const TimedProgram& timed) {
  const DeviceType& device = timed.device;
  TimedProgram unlimited = timed;
  unlimited.device.memory_bandwidth_Bps *= 1e9;
  double time_s = 0, arithmetic_s = 0;
  const std::shared_ptr<const std::vector<double>> times_s = program_times_s(timed);
  const std::shared_ptr<const std::vector<double>> unlimited_s = program_times_s(unlimited);
  std::size_t next = 0;
  for (TaskId t = 0; t < timed.program.size(); ++t)
    for (std::size_t i = 0; i < timed.program[t].ops.size(); ++i, ++next) {
      const double op_s = (*times_s)[next];
      time_s += timed.times(t) * op_s;
      arithmetic_s += timed.times(t) * std::min(op_s, (*unlimited_s)[next]);
    }
  if (time_s <= 0) return std::nullopt;
  const double share = (arithmetic_s + memory_bound_share * (time_s - arithmetic_s)) / time_s;
  return device.idle_power_w + (device.peak_power_w - device.idle_power_w) * share;
}

}  // namespace

std::vector<double> busy_power_w(const Plan& plan, const Machine& machine, const CostModel& cost) {
  static thread_local ProgramMemo<TimedProgram, std::optional<double>> memo;
  std::vector<double> power_w;
  power_w.reserve(machine.devices.size());
  for (const Device& device : machine.devices)
    power_w.push_back(machine.device_types[device.type].peak_power_w);
  for (const Role& role : plan.roles) {
    std::vector<std::optional<double>> of_type(machine.device_types.size());
    for (const EndpointId d : role.members) {
      if (d >= machine.devices.size()) break;  // hosts
      const std::uint32_t type = machine.devices[d].type;
      if (!of_type[type])
        of_type[type] =
            memo.of({{role.program, role.repeats}, machine.device_types[type], cost}, &mean_power_w)
                .value_or(power_w[d]);
      power_w[d] = *of_type[type];
    }
  }
  return power_w;
}

double device_energy_j(const DeviceType& type, double power_w, double busy_s, double step_s) {
  return type.idle_power_w * step_s + (power_w - type.idle_power_w) * busy_s;
}

double step_energy_j(const Machine& machine, double step_s, const std::vector<double>& power_w,
                     const std::function<double(std::size_t)>& busy_s) {
  double energy_j = 0;
  for (std::size_t d = 0; d < machine.devices.size(); ++d)
    energy_j += device_energy_j(machine.device_types[machine.devices[d].type], power_w[d], busy_s(d), step_s);
  for (const Host& host : machine.hosts) energy_j += machine.host_types[host.type].host_power_w * step_s;
  return energy_j;
}

}  // namespace convoy::runs
