// SPDX-License-Identifier: MIT
#include "sim/lowering/jitter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>

#include "sim/base/memo.h"
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
  auto next_s = times_s->begin();
  double sum_s = 0;
  for (TaskId t = 0; t < timed.program.size(); ++t)
    for (std::size_t op = 0; op < timed.program[t].ops.size(); ++op) sum_s += timed.times(t) * *next_s++;
  return sum_s;
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
        it->second =
            computing_s({{role.program, role.repeats}, machine.device_types[device.type], cost}) / plan.steps;
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

namespace {

/// The rounds of averages with neighbours, one a step of the plan; none: there are no such averages.
std::vector<const Pattern*> neighbour_patterns(const Plan& plan) {
  std::vector<const Pattern*> patterns;
  for (const Communication& comm : plan.communications)
    if (const Pattern* pattern = &plan.patterns[comm.pattern];
        comm.purpose == CommPurpose::neighbours &&
        std::find(patterns.begin(), patterns.end(), pattern) == patterns.end())
      patterns.push_back(pattern);
  return patterns;
}

/// Whether devices send before they compute.
bool sends_first(const Role& role) {
  for (const Task& task : role.program) {
    if (task.kind == Task::Kind::collective) return true;
    for (const PlanOp& op : task.ops)
      if (op.operation != PlanOp::of_plan) return false;
  }
  return false;
}

/// Who sends to whom among the first of every so many members: between hosts, where devices of a host are
/// together.
Pattern among_firsts(const Pattern& pattern, std::size_t together) {
  Pattern hosts{{{}}, {pattern.rounds.front()}};
  const std::vector<EndpointId>& devices = pattern.groups.front();
  for (std::size_t i = 0; i < devices.size(); i += together) hosts.groups.front().push_back(devices[i]);
  for (auto& [from, to] : hosts.rounds.front().pairs) {
    from /= static_cast<std::uint32_t>(together);
    to /= static_cast<std::uint32_t>(together);
  }
  return hosts;
}

/// Devices of a host that sum gradients with each other before a further step begins; 1: none do.
std::size_t devices_in_step(const Plan& plan) {
  if (!neighbour_patterns(plan).empty()) {
    for (const Communication& comm : plan.communications)
      if (comm.purpose == CommPurpose::all_reduce) return plan.patterns[comm.pattern].groups.front().size();
    return 1;
  }
  for (const Role& role : plan.roles) {
    const Task* sum = nullptr;
    for (const Task& task : role.program.get()) {
      if (task.begins_step && sum != nullptr)
        return plan.patterns[plan.communications[sum->comm].pattern].groups.front().size();
      if (sum == nullptr && task.kind == Task::Kind::collective) sum = &task;
    }
  }
  return 1;
}

}  // namespace

double expected_last(std::size_t devices, double jitter) {
  if (devices < 2 || jitter <= 0) return 1;
  struct Key {
    std::size_t devices;
    double jitter;
    bool operator==(const Key&) const = default;
    std::size_t hash() const { return hash_with(devices, std::hash<double>{}(jitter)); }
  };
  static thread_local Memo<Key, double> memo(1024);
  return memo.of({devices, jitter}, [](const Key& of) {
    return expected_last_s({{1.0, of.devices}}, of.jitter);
  });
}

double neighbours_wait(const std::vector<const Pattern*>& rounds, bool sends_first, double jitter) {
  constexpr std::size_t settling = 400, measured = 2000;
  const std::size_t devices = rounds.front()->groups.front().size();
  std::vector<double> begun_s(devices, 0), ended_s(devices);
  std::uint64_t state = 1;
  const auto uniform = [&] {  // splitmix64
    std::uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1.0p-53;
  };
  double from_s = 0, sum_s = 0;
  for (std::size_t step = 0; step < settling + measured; ++step) {
    for (std::size_t d = 0; d < devices; ++d) {
      const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
      ended_s[d] = begun_s[d] + std::max(0.0, 1 + jitter * normal);
    }
    const std::vector<double> sent_s = sends_first ? begun_s : ended_s;
    begun_s = ended_s;
    for (const Round& round : rounds[step % rounds.size()]->rounds)
      for (const auto& [from, to] : round.pairs) begun_s[to] = std::max(begun_s[to], sent_s[from]);
    sum_s = 0;
    for (const double begin_s : begun_s) sum_s += begin_s;
    if (step + 1 == settling) from_s = sum_s;
  }
  // Waiting makes no step shorter; where there is next to none, the mean of what was drawn may lie below 1.
  return std::max(1.0, (sum_s - from_s) / static_cast<double>(measured * devices));
}

namespace {

/// How many times as long as the slowest device alone a step takes because devices wait for each other by
/// chance, where not all of them do so in every step.
double slowdown_of_averages(const Plan& plan, const std::map<double, std::size_t>& times, double jitter) {
  const std::size_t in_host = devices_in_step(plan);
  if (const std::vector<const Pattern*> rounds = neighbour_patterns(plan); !rounds.empty()) {
    if (in_host == 1) return neighbours_wait(rounds, sends_first(plan.roles.front()), jitter);
    std::vector<Pattern> of_hosts;
    std::vector<const Pattern*> steps;
    for (const Pattern* pattern : rounds) of_hosts.push_back(among_firsts(*pattern, in_host));
    for (const Pattern& pattern : of_hosts) steps.push_back(&pattern);
    return expected_last(in_host, jitter) * neighbours_wait(steps, sends_first(plan.roles.front()), jitter);
  }
  std::vector<DeviceSteps> steps = merged(times);
  for (DeviceSteps& step : steps) step.devices = std::max<std::size_t>(1, step.devices / in_host);
  return expected_last(in_host, jitter) * expected_last_s(steps, jitter / std::sqrt(plan.steps)) /
         times.rbegin()->first;
}

}  // namespace

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
  const bool averages = plan.steps > 1 || !neighbour_patterns(plan).empty();
  const double slowdown = averages ? slowdown_of_averages(plan, times, jitter)
                                   : expected_last_s(merged(times), jitter) / slowest_s;
  for (Role& role : plan.roles)
    if (std::ranges::any_of(role.program.get(), [](const Task& task) { return !task.ops.empty(); }))
      role.slowdown = slowdown;
}

}  // namespace convoy::lowering
