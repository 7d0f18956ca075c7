// SPDX-License-Identifier: MIT
#include "sim/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/plan/program_key.h"
#include "sim/plan/repetition.h"

namespace convoy::inline plans {
namespace {

template <class... Args>
void require(bool good, fmt::format_string<Args...> text, Args&&... args) {
  if (!good) throw std::logic_error("plan: " + fmt::format(text, std::forward<Args>(args)...));
}

bool is_size(double value) { return std::isfinite(value) && value >= 0; }

/// A member may send and receive in one communication, and otherwise has one task in it.
void validate_used_once(const Plan& plan, const Role& role) {
  constexpr unsigned sends = 1, receives = 2;
  std::map<CommId, unsigned> used;
  for (const Task& task : role.program) {
    if (task.kind == Task::Kind::compute) continue;
    const unsigned use = task.kind == Task::Kind::send      ? sends
                         : task.kind == Task::Kind::receive ? receives
                                                            : sends | receives;
    unsigned& so_far = used[task.comm];
    require((so_far & use) == 0, "task '{}' of role '{}' uses communication '{}' a second time", task.name,
            role.name, plan.communications[task.comm].name);
    so_far |= use;
  }
}

/// A program that was found sound: what that depends on beside names.
struct CheckedProgram : ProgramKey {
  std::size_t streams, communications;
  bool devices;
  bool operator==(const CheckedProgram&) const = default;
};

void validate_operations(const Task& task) {
  for (const PlanOp& op : task.ops) {
    require(is_size(op.images), "operation '{}' on {} images", op.name, op.images);
    for (const std::vector<MemoryDelta>* deltas : {&op.allocates, &op.frees})
      for (const MemoryDelta& delta : *deltas)
        require(is_size(delta.bytes) && delta.bytes > 0, "operation '{}' allocates or frees {} bytes",
                op.name, delta.bytes);
  }
}

void validate_task(const Plan& plan, const Role& role, TaskId id, bool devices) {
  const Task& task = role.program[id];
  require(task.stream == Task::no_stream ||
              (task.stream >= 0 && static_cast<std::size_t>(task.stream) < role.streams.size()),
          "task '{}' of role '{}' is on stream {} of {}", task.name, role.name, task.stream,
          role.streams.size());
  for (const TaskId before : task.after)
    require(before < id, "task '{}' of role '{}' waits for a later task", task.name, role.name);
  if (task.kind == Task::Kind::compute) {
    require(task.stream == 0, "compute task '{}' of role '{}' is not on stream 0", task.name, role.name);
    require(devices ? task.seconds == 0 : task.ops.empty(),
            "task '{}' of role '{}': devices run operations, hosts take seconds", task.name, role.name);
    require(is_size(task.seconds), "task '{}' takes {} s", task.name, task.seconds);
    return;
  }
  require(task.comm < plan.communications.size(), "task '{}' uses communication {} of {}", task.name,
          task.comm, plan.communications.size());
}

/// @pre the program is sound
void validate_repeats(const Role& role) {
  const RepeatedTasks& repeats = *role.repeats;
  require(repeats.tasks > 0 && repeats.listed >= 2 && repeats.left_out > 0 && repeats.micro_batches > 0 &&
              repeats.end() < role.program.size(),
          "role '{}' repeats {} x {} of {} tasks", role.name, repeats.listed, repeats.tasks,
          role.program.size());
  for (TaskId t = repeats.first; t + repeats.tasks < repeats.end(); ++t) {
    const Task &task = role.program[t], &next = role.program[t + repeats.tasks];
    require(task.kind == next.kind && task.stream == next.stream && task.seconds == next.seconds &&
                task.ops.size() == next.ops.size() && task.after.size() == next.after.size(),
            "task '{}' of role '{}' is not what '{}' is a period later", task.name, role.name, next.name);
    for (std::size_t i = 0; i < task.after.size(); ++i)
      require(task.after[i] + repeats.tasks == next.after[i],
              "'{}' and '{}' of role '{}' wait for other tasks", task.name, next.name, role.name);
  }
  const TaskId last = repeats.end() - repeats.tasks;
  for (TaskId t = last; t < role.program.size(); ++t)
    for (const TaskId before : role.program[t].after)
      require(before >= last, "task '{}' of role '{}' waits for one before the last listed period",
              role.program[t].name, role.name);
}

/// @pre the programs are sound
void validate_left_out(const Plan& plan) {
  const RepeatedTasks* all = left_out(plan);
  if (all == nullptr) return;
  require(std::holds_alternative<OneStep>(plan.course) && plan.steps == 1,
          "programs of several steps leave tasks out");
  for (const Role& role : plan.roles) {
    if (role.program.empty()) continue;
    require(role.repeats && role.repeats->listed == all->listed && role.repeats->left_out == all->left_out &&
                role.repeats->micro_batches == all->micro_batches,
            "role '{}' does not leave out what other roles do", role.name);
    validate_repeats(role);
  }
}

/// @pre the program is sound
void validate_patterns_of(const Plan& plan, const std::vector<Task>& program) {
  for (const Task& task : program) {
    if (task.kind != Task::Kind::send && task.kind != Task::Kind::receive) continue;
    const Pattern& pattern = plan.patterns[plan.communications[task.comm].pattern];
    require(pattern.rounds.size() == 1 && pattern.rounds[0].repeat == 1,
            "'{}' sends over a pattern of several rounds", task.name);
  }
}

void validate_all_to_all(const Round& round, std::size_t group_size) {
  require(!round.latency_s, "an all-to-all has a latency other than its routes'");
  require(round.pairs.empty() && round.fractions.empty(), "a round is an all-to-all and lists {} pairs",
          round.pairs.size());
  for (const auto* parts : {&round.all_to_all->senders, &round.all_to_all->receivers}) {
    std::vector<char> there(group_size, 0);
    for (const AllToAll::Part& part : *parts) {
      require(part.member < group_size && !there[part.member],
              "member {} of a group of {} is not there, or twice in an all-to-all", part.member, group_size);
      require(is_size(part.share), "a part of an all-to-all has the share {}", part.share);
      there[part.member] = 1;
    }
  }
}

void validate_rotation(const Round& round) {
  const RotatingShares& rotation = *round.rotation;
  require(rotation.ring >= 2 && rotation.first < rotation.ring && round.repeat == rotation.ring - 1 &&
              round.pairs.size() % rotation.ring == 0 && rotation.shares.size() == round.pairs.size() &&
              !round.all_to_all,
          "{} shares of {} pairs go around rings of {} in {} repetitions", rotation.shares.size(),
          round.pairs.size(), rotation.ring, round.repeat);
  for (std::size_t pair = 0; pair < round.pairs.size(); ++pair) {
    require(is_size(rotation.shares[pair]), "a pair carries the share {}", rotation.shares[pair]);
    const std::size_t next = pair - pair % rotation.ring + (pair + 1) % rotation.ring;
    require(round.pairs[pair].second == round.pairs[next].first, "the pairs {} and {} are not of one ring",
            pair, next);
  }
}

void validate_pattern(const Pattern& pattern, std::size_t endpoint_count) {
  std::vector<char> in_group(endpoint_count, 0);
  for (const std::vector<EndpointId>& group : pattern.groups) {
    for (const EndpointId e : group) {
      require(e < endpoint_count, "a pattern names endpoint {} of {}", e, endpoint_count);
      require(!in_group[e], "endpoint {} is twice in a pattern", e);
      in_group[e] = 1;
    }
    for (const Round& round : pattern.rounds) {
      require(round.fractions.size() == 1 || round.fractions.size() == round.pairs.size(),
              "{} fractions for {} pairs", round.fractions.size(), round.pairs.size());
      for (const double fraction : round.fractions)
        require(is_size(fraction), "a pair carries the fraction {}", fraction);
      require(is_size(round.latency_s.value_or(0)), "messages have a latency of {} s",
              round.latency_s.value_or(0));
      if (round.all_to_all) validate_all_to_all(round, group.size());
      if (round.rotation) validate_rotation(round);
      for (const auto& [from, to] : round.pairs)
        require(from < group.size() && to < group.size() && from != to, "pair {} -> {} in a group of {}",
                from, to, group.size());
    }
  }
}

/// Whether the second pattern is the first, which lists its messages, with every message the other way round.
bool is_way_back(const Pattern& push, const Pattern& pull) {
  if (push.groups != pull.groups || push.rounds.size() != 1 || pull.rounds.size() != 1) return false;
  return !push.rounds[0].all_to_all && push.rounds[0].reversed().pairs == pull.rounds[0].pairs;
}

void validate_service(const Plan& plan, const Machine& machine) {
  const Service& service = *plan.service();
  std::vector<char> is_client(machine.devices.size(), 0);
  for (const Service::Client& client : service.clients) {
    require(client.device < machine.devices.size() && !is_client[client.device],
            "client {} of the service is no device, or twice there", client.device);
    is_client[client.device] = 1;
    require(is_size(client.images) && is_size(client.start_s), "client {} has {} images and begins at {} s",
            client.device, client.images, client.start_s);
  }
  for (const Role& role : plan.roles)
    for (const EndpointId e : role.members)
      require(e < machine.devices.size() ? is_client[e] != 0 : role.program.empty(),
              "role '{}' is neither a client of the service nor a host without program", role.name);
  for (const Service::Exchange& exchange : service.exchanges) {
    require(std::max(exchange.push, exchange.pull) < plan.communications.size(),
            "the service exchanges communications {} and {} of {}", exchange.push, exchange.pull,
            plan.communications.size());
    const Communication& push = plan.communications[exchange.push];
    const Communication& pull = plan.communications[exchange.pull];
    require(is_way_back(plan.patterns[push.pattern], plan.patterns[pull.pattern]),
            "'{}' is not the way back of '{}'", pull.name, push.name);
    require(is_size(exchange.added_bytes.value_or(0)), "servers add up {} bytes of '{}'",
            exchange.added_bytes.value_or(0), push.name);
  }
  require(2 * service.exchanges.size() == plan.communications.size(),
          "{} communications of a plan with a service, {} of them its exchanges", plan.communications.size(),
          2 * service.exchanges.size());
  require(service.max_lead >= 1 && service.measured_steps >= 1, "a service with lead {}, {} measured steps",
          service.max_lead, service.measured_steps);
  require(service.compute_spread == 0 || service.step_jitter == 0,
          "compute times of a service's clients are drawn from two distributions");
  require(service.quorum <= (service.exchanges.empty() ? 0 : service.clients.size()),
          "{} pushes of {} clients make an update", service.quorum, service.clients.size());
}

void validate_endless(const Plan& plan) {
  const EndlessRun& run = *plan.endless();
  require(run.steady_steps >= 2 && run.steady_steps <= run.steps.size(),
          "an endless run of {} steps of which {} are steady", run.steps.size(), run.steady_steps);
  require(run.uses_per_step.size() == plan.patterns.size(), "{} of {} patterns are used in a step",
          run.uses_per_step.size(), plan.patterns.size());
  for (const double uses : run.uses_per_step) require(is_size(uses), "a pattern is used {} times", uses);
  for (const std::vector<EndlessRun::End>& step : run.steps) {
    require(!step.empty(), "a step of an endless run has no end");
    for (const EndlessRun::End& end : step)
      require(end.role < plan.roles.size() && end.task < plan.roles[end.role].program.size(),
              "a step ends with task {} of role {}", end.task, end.role);
  }
}

}  // namespace

void validate(const Plan& plan, const Machine& machine) {
  const std::size_t endpoint_count = machine.endpoint_count();
  for (const Pattern& pattern : plan.patterns) validate_pattern(pattern, endpoint_count);
  for (const Communication& comm : plan.communications) {
    require(comm.pattern < plan.patterns.size(), "'{}' has pattern {} of {}", comm.name, comm.pattern,
            plan.patterns.size());
    require(is_size(comm.bytes) && is_size(comm.overhead_s), "'{}' has {} bytes, {} s overhead", comm.name,
            comm.bytes, comm.overhead_s);
  }
  static thread_local ProgramMemo<CheckedProgram, bool> memo;
  std::vector<char> has_role(endpoint_count, 0);
  for (const Role& role : plan.roles) {
    require(!role.members.empty(), "role '{}' has no members", role.name);
    require(std::isfinite(role.slowdown) && role.slowdown > 0, "role '{}' takes {} times as long", role.name,
            role.slowdown);
    for (const double bytes : role.resident_bytes)
      require(is_size(bytes), "role '{}' holds {} bytes throughout the step", role.name, bytes);
    const bool devices = role.members[0] < machine.devices.size();
    for (const EndpointId e : role.members) {
      require(e < endpoint_count, "role '{}' names endpoint {} of {}", role.name, e, endpoint_count);
      require((e < machine.devices.size()) == devices, "role '{}' mixes devices and hosts", role.name);
      require(!has_role[e], "{} has two roles", machine.endpoint_name(e));
      has_role[e] = 1;
    }
    memo.of({{role.program}, role.streams.size(), plan.communications.size(), devices}, [&](const auto&) {
      std::set<const std::vector<PlanOp>*> sound;  // of those that tasks share
      for (TaskId t = 0; t < role.program.size(); ++t) {
        validate_task(plan, role, t, devices);
        const Task& task = role.program[t];
        if (!task.ops.is_shared() || sound.insert(&task.ops.get()).second) validate_operations(task);
      }
      validate_used_once(plan, role);
      return true;
    });
    validate_patterns_of(plan, role.program);
  }
  for (const Pattern& pattern : plan.patterns)
    for (const std::vector<EndpointId>& group : pattern.groups)
      for (const EndpointId e : group)
        require(has_role[e], "{} communicates but has no role", machine.endpoint_name(e));
  require(std::isfinite(plan.steps) && plan.steps >= 1, "programs of {} steps", plan.steps);
  require(plan.steps == 1 || std::holds_alternative<OneStep>(plan.course),
          "programs of {} steps that overlap", plan.steps);
  validate_left_out(plan);
  if (plan.service()) validate_service(plan, machine);
  if (plan.endless()) validate_endless(plan);
}

}  // namespace convoy::plans
