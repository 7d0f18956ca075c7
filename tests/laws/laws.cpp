// SPDX-License-Identifier: MIT
#include "tests/laws/laws.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "sim/replay/lower_bound.h"
#include "tests/support/approx.h"

namespace convoy::lab {
namespace {

constexpr double rounding = 1e-9;

double task_s(const Trial& trial, const Role& role, EndpointId member, const Task& task) {
  if (member >= trial.machine.devices.size()) return task.seconds;
  const Device& device = trial.machine.devices[member];
  double seconds = 0;
  for (const PlanOp& op : task.ops)
    seconds += trial.cost.time_s(op.work, op.images, trial.machine.device_types[device.type]) / device.speed;
  return seconds * role.slowdown;
}

/// The graph's operation that a plan's is: without " of step 2" (where a plan has several), " #3" (micro-batch)
/// and " again" (recomputation).
std::string name_of_operation(std::string name) {
  if (const std::size_t at = name.find(" of step "); at != std::string::npos) name.resize(at);
  if (const std::size_t at = name.find(" #"); at != std::string::npos) name.resize(at);
  if (name.ends_with(" again")) name.resize(name.size() - 6);
  return name;
}

/// Ends of all tasks when messages take no time, by going over all of them until nothing changes.
class LongestChain {
 public:
  explicit LongestChain(const Trial& trial) : trial_(trial) {
    for (const Role& role : trial.plan.roles)
      for (const EndpointId member : role.members)
        programs_.push_back({&role, member, std::vector<double>(role.program.size(), 0.0),
                             std::vector<double>(role.program.size(), 0.0)});
  }
  double seconds() {
    do {
      changed_ = false;
      for (Program& program : programs_) go_through(program);
    } while (changed_);
    double last_s = 0;
    for (const Program& program : programs_)
      for (const double end_s : program.end_s) last_s = std::max(last_s, end_s);
    return last_s;
  }

 private:
  struct Program {
    const Role* role;
    EndpointId member;
    std::vector<double> start_s, end_s;
  };

  void go_through(Program& program) {
    std::map<int, double> stream_s;
    for (TaskId id = 0; id < program.role->program.size(); ++id) {
      const Task& task = program.role->program[id];
      double start_s = task.stream == Task::no_stream ? 0 : stream_s[task.stream];
      for (const TaskId before : task.after) start_s = std::max(start_s, program.end_s[before]);
      double end_s = start_s;
      if (task.kind == Task::Kind::compute) end_s += task_s(trial_, *program.role, program.member, task);
      if (task.kind == Task::Kind::receive || task.kind == Task::Kind::collective)
        end_s = std::max(end_s, arrival_s(task, program.member));
      changed_ = changed_ || start_s > program.start_s[id] || end_s > program.end_s[id];
      program.start_s[id] = start_s;
      program.end_s[id] = end_s;
      if (task.stream != Task::no_stream) stream_s[task.stream] = end_s;
    }
  }

  /// When what `member` gets in a communication has been made: round by round, whoever receives knows what
  /// the sender knew before.
  double arrival_s(const Task& receiving, EndpointId member) const {
    const Pattern& pattern = trial_.plan.patterns[trial_.plan.communications[receiving.comm].pattern];
    for (const std::vector<EndpointId>& group : pattern.groups) {
      const auto own = std::find(group.begin(), group.end(), member);
      if (own == group.end()) continue;
      std::vector<double> known_s;
      for (const EndpointId endpoint : group) known_s.push_back(set_out_s(receiving, endpoint));
      for (const Round& round : pattern.rounds)
        for (std::uint32_t again = 0; again < std::min<std::size_t>(round.repeat, group.size()); ++again) {
          const std::vector<double> before_s = known_s;
          round.for_each_message(
              [&](auto from, auto to, double) { known_s[to] = std::max(known_s[to], before_s[from]); });
        }
      return known_s[static_cast<std::size_t>(own - group.begin())];
    }
    return 0;
  }

  double set_out_s(const Task& receiving, EndpointId endpoint) const {
    const Task::Kind kind = receiving.kind == Task::Kind::receive ? Task::Kind::send : Task::Kind::collective;
    for (const Program& program : programs_) {
      if (program.member != endpoint) continue;
      for (TaskId id = 0; id < program.role->program.size(); ++id)
        if (const Task& task = program.role->program[id]; task.kind == kind && task.comm == receiving.comm)
          return program.start_s[id];
    }
    return 0;
  }

  const Trial& trial_;
  std::vector<Program> programs_;
  bool changed_ = false;
};

}  // namespace

bool same(double a, double b) {
  return std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b)) + 1e-12;
}
bool no_more(double a, double b) { return a <= b * (1 + rounding) + 1e-12; }

Traffic traffic_of(const Plan& plan, const Machine& machine) {
  Traffic traffic{std::vector<double>(machine.endpoint_count()),
                  std::vector<double>(machine.endpoint_count()), std::vector<double>(machine.links.size())};
  Route route;
  for (const Communication& comm : plan.communications)
    for (const std::vector<EndpointId>& group : plan.patterns[comm.pattern].groups)
      for (const Round& round : plan.patterns[comm.pattern].rounds)
        round.for_each_message([&](auto sender, auto receiver, double fraction) {
          const EndpointId from = group[sender], to = group[receiver];
          const double bytes = comm.bytes * fraction * round.repeat / plan.steps;
          machine.router->route(from, to, route);
          if (route.links.empty()) return;
          traffic.sent[from] += bytes;
          traffic.received[to] += bytes;
          traffic.total += bytes;
          for (const LinkId link : route.links) traffic.links[link] += bytes;
        });
  return traffic;
}

void check_bytes(const Trial& trial) {
  const ReplayResult& result = trial.result;
  const Traffic expected = traffic_of(trial.plan, trial.machine);
  double sent = 0, received = 0;
  for (EndpointId e = 0; e < trial.machine.endpoint_count(); ++e) {
    if (!trial.plan.service()) {
      CHECK(same(result.endpoints[e].sent_bytes, expected.sent[e]));
      CHECK(same(result.endpoints[e].received_bytes, expected.received[e]));
    }
    sent += result.endpoints[e].sent_bytes;
    received += result.endpoints[e].received_bytes;
  }
  CHECK(same(sent, received));
  CHECK(same(sent, result.comm_bytes));
  if (!trial.plan.service()) CHECK(same(expected.total, result.comm_bytes));
  for (std::size_t l = 0; l < result.links.size(); ++l) {
    const Link& link = trial.machine.links[l];
    CAPTURE(link.name);
    if (!trial.plan.service()) CHECK(same(result.links[l].bytes, expected.links[l]));
    const double least_s = result.links[l].bytes / link.bandwidth_Bps;
    if (trial.plan.service())
      CHECK(no_more(least_s, result.step_time_s));
    else
      CHECK(no_more(least_s, result.links[l].busy_s));
    CHECK(no_more(result.links[l].busy_s, result.step_time_s));
    CHECK(no_more(result.links[l].busy_s, result.port_busy_s[link.port]));
  }
}

void check_time(const Trial& trial) {
  double last_s = 0;
  for (const EndpointUsage usage : trial.result.endpoints) {
    CHECK(usage.compute_s >= 0);
    CHECK(usage.exposed_comm_s >= 0);
    CHECK(no_more(usage.compute_s + usage.exposed_comm_s, usage.end_s));  // idle time is the rest of the step
    CHECK(no_more(usage.end_s, trial.result.step_time_s));
    last_s = std::max(last_s, usage.end_s);
  }
  CHECK(last_s == trial.result.step_time_s);
}

void check_devices(const Trial& trial) {
  for (const Role& role : trial.plan.roles) {
    for (const EndpointId member : role.members) {
      CAPTURE(member);
      double program_s = 0, spans_s = 0, busy_until_s = -1;
      for (const Task& task : role.program) program_s += task_s(trial, role, member, task);
      for (const Span& span : spans_of(trial.result, trial.plan, trial.machine, trial.cost, member)) {
        if (!span.compute) continue;
        CHECK(span.start_s >= busy_until_s);
        busy_until_s = span.end_s;
        spans_s += span.end_s - span.start_s;
      }
      // The step shown of an asynchronous worker takes its random multiple of the mean: a uniform one, or a
      // normal one, of which none here is farther out than six standard deviations.
      const Service* const service = trial.plan.service();
      const double spread = service ? std::max(service->compute_spread, 6 * service->step_jitter) : 0;
      // Events less than 1e-12 s apart are of one moment (sim/replay/flow_model.h), at either end of a task.
      const double moments_s = 2e-12 * static_cast<double>(role.program.size());
      CHECK(no_more((1 - spread) * program_s, spans_s + moments_s));
      CHECK(no_more(spans_s, (1 + spread) * program_s + moments_s));
      if (!trial.plan.service())
        CHECK(std::abs(trial.plan.steps * trial.result.endpoints[member].compute_s -
                       program_s / role.slowdown) <= rounding * program_s + moments_s);
    }
  }
}

void check_roles(const Trial& trial) {
  const Machine& machine = trial.machine;
  std::vector<int> roles(machine.devices.size(), 0);
  for (const Role& role : trial.plan.roles) {
    CAPTURE(role.name);
    for (const EndpointId member : role.members) {
      if (member >= machine.devices.size()) continue;
      CHECK(++roles[member] == 1);
      CHECK(machine.devices[member].type == machine.devices[role.members.front()].type);
      CHECK(role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] ==
            machine.device_types[machine.devices[member].type].reserved_bytes);
    }
  }
}

void check_memory(const Trial& trial) {
  for (const Role& role : trial.plan.roles) {
    if (role.members.front() >= trial.machine.devices.size()) continue;
    const double resident = std::accumulate(role.resident_bytes.begin(), role.resident_bytes.end(), 0.0);
    double held = resident, peak = resident;
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops) {
        for (const MemoryDelta& delta : op.allocates) held += delta.bytes;
        peak = std::max(peak, held);
        for (const MemoryDelta& delta : op.frees) held -= delta.bytes;
      }
    CHECK(std::abs(held - resident) <= rounding * peak);
    for (const EndpointId member : role.members) {
      CAPTURE(member);
      CHECK(same(trial.result.endpoints[member].peak_memory_bytes, peak));
      for (const MemoryPoint& point : memory_of(trial.result, trial.plan, trial.machine, trial.cost, member))
        CHECK(no_more(std::accumulate(point.bytes.begin(), point.bytes.end(), 0.0), peak));
    }
  }
}

void check_bounds(const Trial& trial) {
  double work_s = 0;
  for (EndpointId d = 0; d < trial.machine.devices.size(); ++d) work_s += trial.result.endpoints[d].compute_s;
  CHECK(no_more(work_s / static_cast<double>(trial.machine.devices.size()), trial.result.step_time_s));
  const LowerBound bound = lower_bound(trial.plan, trial.machine, trial.cost);
  CHECK(no_more(bound.step_time_s, trial.result.step_time_s));
  for (EndpointId d = 0; d < bound.running_s.size(); ++d)
    CHECK(same(bound.running_s[d], trial.result.endpoints[d].running_s()));
  if (trial.plan.service()) return;  // no common step
  CHECK(no_more(LongestChain(trial).seconds() / trial.plan.steps, trial.result.step_time_s));
}

void check_operations(const Trial& trial, const OperationCounts& counts) {
  struct Done {
    double images = 0, flops = 0;
  };
  std::map<std::string, Done> done;
  for (const Role& role : trial.plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops) {
        if (op.work == Work{}) continue;
        Done& of_operation = done[name_of_operation(op.name)];
        const auto members = static_cast<double>(role.members.size());
        of_operation.images += members * op.images;
        of_operation.flops += members * (op.images * op.work.flops_per_image + op.work.flops_fixed);
      }
  double images = trial.plan.images * trial.plan.steps;
  if (trial.plan.service()) {
    images = 0;
    for (const Service::Client& client : trial.plan.service()->clients) images += client.images;
  }
  std::set<std::string> again;
  for (const Operation& op : trial.graph.operations)
    if (op.again) again.insert(name_of_operation(op.name));
  std::map<std::uint32_t, std::pair<double, double>> sums;  ///< FLOPs by layer: the graph's, the plan's
  for (const Operation& op : trial.graph.operations) {
    if (op.again) continue;
    CAPTURE(op.name);
    const Done of_operation = done[op.name];
    done.erase(op.name);
    const bool update = op.phase == Phase::update;
    const double runs = op.phase != Phase::forward ? 1 : again.contains(op.name) ? 2 : counts.forward;
    const double times = update ? counts.updates * trial.plan.steps : images * runs;
    const double flops = times * (op.work.flops_per_image + op.work.flops_fixed);  // the latter of updates
    if (counts.sums && op.part == OperationPart::gradient_sum) {
      sums[op.layer].first += flops;
      sums[op.layer].second += of_operation.flops;
    } else if (flops > 0) {
      CHECK(same(of_operation.flops, flops));
    } else {
      CHECK(of_operation.images >= times);
    }
  }
  // What parts add up of what others have made is not added up again.
  for (const auto& [layer, flops] : sums) {
    const std::string name = trial.graph.model.layers[layer].name + counts.sums;
    CAPTURE(name);
    CHECK(no_more(flops.first, flops.second + (done.contains(name) ? done[name].flops : 0)));
  }
  for (const auto& [name, of_operation] : done) {
    CAPTURE(name);
    CHECK(((counts.sums && name.ends_with(counts.sums)) ||
           (counts.of_messages && name.starts_with(counts.of_messages))));
  }
}

}  // namespace convoy::lab
