// SPDX-License-Identifier: MIT
#include "sim/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/plan/ledger.h"
#include "sim/plan/repetition.h"
#include "sim/plan/validate.h"
#include "sim/replay/compute_times.h"
#include "sim/replay/executor.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/folded_flows.h"
#include "sim/replay/input_queue.h"

namespace convoy::inline replays {
namespace {

/// Adds the bytes of an all-to-all; a plan with a service has none.
void count_bytes(const Plan& plan, const FlowTable& table, const AllToAllFlows& flows, double pattern_bytes,
                 ReplayResult& result) {
  const std::uint32_t pattern = table.groups[flows.group].pattern;
  const double bytes = pattern_bytes * plan.patterns[pattern].rounds[flows.round].repeat;
  const auto sum_of_shares = [](const std::vector<AllToAllFlows::End>& ends) {
    return std::accumulate(ends.begin(), ends.end(), 0.0,
                           [](double sum, const AllToAllFlows::End& end) { return sum + end.share; });
  };
  std::vector<double> to_others(flows.senders.size(), sum_of_shares(flows.receivers)),
      from_others(flows.receivers.size(), sum_of_shares(flows.senders));
  for (const auto& [sender, receiver] : flows.apart) {
    to_others[sender] -= flows.receivers[receiver].share;
    from_others[receiver] -= flows.senders[sender].share;
  }
  const auto add = [&](const AllToAllFlows::End& end, double others) {
    const double sum_bytes = bytes * end.share * others;
    for (const LinkId link : table.half(end)) result.links[link].bytes += sum_bytes;
    return sum_bytes;
  };
  for (std::size_t i = 0; i < flows.senders.size(); ++i) {
    const double sent_bytes = add(flows.senders[i], to_others[i]);
    result.endpoints.add_sent(flows.senders[i].endpoint, sent_bytes);
    result.comm_bytes += sent_bytes;
  }
  for (std::size_t i = 0; i < flows.receivers.size(); ++i)
    result.endpoints.add_received(flows.receivers[i].endpoint, add(flows.receivers[i], from_others[i]));
}

/// Bytes by endpoint and link: what the plan says is sent, whatever the timing, as often as the clients of a
/// service do.
void count_bytes(const Plan& plan, const Machine& machine, const FlowTable& table, const Folding& folding,
                 const std::vector<double>& pace, ReplayResult& result) {
  const std::vector<double> pattern_bytes = step_bytes(plan);
  const std::vector<bool> is_answer = patterns_of_answers(plan);
  for (const Flow& flow : table.flows) {
    const FlowPath& path = table.path(flow);
    if (path.link_count == 0) continue;
    const std::uint32_t pattern = table.groups[path.group].pattern;
    double bytes = pattern_bytes[pattern] * flow.fraction * plan.patterns[pattern].rounds[flow.round].repeat;
    if (plan.service()) {
      const bool from_client = path.from < machine.devices.size() && !is_answer[pattern];
      bytes *= pace[folding.endpoint_class[from_client ? path.from : path.to]];
    }
    result.endpoints.add_sent(path.from, bytes);
    result.endpoints.add_received(path.to, bytes);
    result.comm_bytes += bytes;
    for (const LinkId link : table.route(path))
      if (link < machine.links.size()) result.links[link].bytes += bytes;
  }
  for (const AllToAllFlows& flows : table.all_to_all)
    count_bytes(plan, table, flows, pattern_bytes[table.groups[flows.group].pattern], result);
}

/// The step of a service is the mean of a measurement, and slightly inaccurate if chance played a part: it
/// takes at least as long as the busiest link needs for the bytes of a step, and as clients need that wait for nobody. Any
/// additional time, devices wait for messages.
/// @param clients_need_s Execution::least_s
void last_as_long_as_needed(const Machine& machine, double clients_need_s, ReplayResult& result) {
  double needed_s = clients_need_s;
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    needed_s = std::max(needed_s, result.links[l].bytes / machine.links[l].bandwidth_Bps);
  const double wait_s = needed_s - result.step_time_s;
  if (wait_s <= 0) return;
  result.step_time_s = needed_s;
  for (EndpointUsage& endpoint : result.endpoints.of_class()) {
    if (endpoint.end_s == 0) continue;
    endpoint.end_s = needed_s;
    endpoint.exposed_comm_s += wait_s;
  }
}

/// Steps of a synchronous plan follow one another, and each begins when every host has prepared the images of
/// its devices (step_with_input_s).
/// @param steps that the programs are of, for which a host prepares images as for one
void wait_for_input(const InputFeed& feed, double steps, bool endless, Execution& execution,
                    ReplayResult& result) {
  const double with_input_s = step_with_input_s(feed, steps, execution.end_s);
  const double wait_s = with_input_s - execution.end_s;
  execution.end_s = with_input_s;
  if (wait_s <= 1e-9 * with_input_s) return;
  result.input_wait_s = wait_s;
  for (Execution::Usage& usage : execution.usage) usage.end_s += wait_s;
  if (endless) return;
  for (Timeline& timeline : execution.timelines)
    for (TaskTimes& times : timeline.tasks) times.start_s += wait_s, times.end_s += wait_s;
}

/// Of programs of several steps, what a step takes in the mean; the timelines stay.
void take_mean(double steps, Execution& execution, ReplayResult& result) {
  execution.end_s /= steps;
  result.input_wait_s /= steps;
  for (Execution::Usage& usage : execution.usage) usage = {usage.times * (1 / steps), usage.end_s / steps};
  for (std::vector<double>* busy_s : {&execution.link_busy_s, &execution.port_busy_s})
    for (double& each_s : *busy_s) each_s /= steps;
}

/// What endpoints did, but for their bytes.
EndpointUsages usages(const Plan& plan, const Folding& folding, const Execution& execution) {
  std::vector<MemoryPeak> peak_of_role;
  for (const Role& role : plan.roles) {
    require_balanced_memory(role);
    peak_of_role.push_back(peak_memory(role));
  }
  std::vector<EndpointUsage> of_class(execution.usage.size());
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    const Execution::Usage& usage = execution.usage[c];
    const MemoryPeak& peak = peak_of_role[folding.endpoint_role[c]];
    EndpointUsage& endpoint = of_class[c];
    endpoint.compute_s = usage.times.compute_s;
    endpoint.issue_wait_s = usage.times.issue_wait_s;
    endpoint.exposed_comm_s = usage.times.comm.exposed_s;
    endpoint.hidden_comm_s = usage.times.comm.hidden_s;
    endpoint.comm_slack_s = usage.times.comm.slack_s;
    endpoint.end_s = usage.end_s;
    endpoint.peak_memory_bytes = peak.bytes;
    endpoint.memory_at_peak = peak.level;
  }
  return {folding.endpoint_class, std::move(of_class)};
}

/// Nothing where what the plan leaves out is not known from the periods that it lists.
/// @param periods_missing then: how many more have to be listed
std::optional<ReplayResult> replay_listed(const Plan& plan, const Machine& machine, const CostModel& cost,
                                          const ReplayOptions& options, std::uint64_t& periods_missing) {
  validate(plan, machine);
  FoldedFlows flows = folded_flows(plan, machine, options.fold, options.disturbances);
  const FlowTable& table = flows.table();
  const Folding& folding = flows.folding();
  Execution execution =
      execute({plan, machine, cost, table, flows.one_by_one(), folding},
              {Contention::shared, options.network_model, options.disturbances, options.service_log});
  if (execution.periods_missing > 0) {
    periods_missing = execution.periods_missing;
    return std::nullopt;
  }

  ReplayResult result;
  if (plan.input) {
    const std::vector<double>& interval_s = plan.input->interval_s;
    result.input_host = static_cast<std::uint32_t>(std::max_element(interval_s.begin(), interval_s.end()) -
                                                   interval_s.begin());
    result.input_wait_s = execution.input_wait_s;
    if (!plan.service())
      wait_for_input(*plan.input, plan.steps, plan.endless() != nullptr, execution, result);
  }
  if (plan.steps > 1) take_mean(plan.steps, execution, result);
  result.step_time_s = execution.end_s;
  result.simulated_flows = folding.flow_class_count();
  flows.release_execution();
  result.endpoints = usages(plan, folding, execution);
  result.links.resize(machine.links.size());
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (folding.link_class[l] != Folding::none)
      result.links[l].busy_s = execution.link_busy_s[folding.link_class[l]];
  result.port_busy_s = std::move(execution.port_busy_s);
  result.timelines = std::move(execution.timelines);
  result.timeline_of = folding.endpoint_class;
  count_bytes(plan, machine, table, folding, execution.pace, result);
  if (plan.service()) {
    last_as_long_as_needed(machine, execution.least_s, result);
    for (const std::uint32_t c : folding.endpoint_class)
      result.pace.push_back(c < execution.pace.size() ? execution.pace[c] : 0);
  }
  result.staleness = execution.staleness;
  result.doubt = execution.doubt;
  return result;
}

}  // namespace

std::vector<bool> patterns_of_answers(const Plan& plan) {
  std::vector<bool> is_answer(plan.patterns.size());
  if (plan.service())
    for (const Service::Exchange& exchange : plan.service()->exchanges)
      is_answer[plan.communications[exchange.pull].pattern] = true;
  return is_answer;
}

ReplayResult replay(const Plan& plan, const Machine& machine, const CostModel& cost,
                    const ReplayOptions& options) {
  if (left_out(plan) != nullptr &&
      (!options.disturbances.empty() || options.network_model == NetworkModel::simgrid))
    return replay(with_all_listed(plan), machine, cost, options);
  std::uint64_t missing = 0;
  if (std::optional<ReplayResult> result = replay_listed(plan, machine, cost, options, missing))
    return *std::move(result);
  for (Plan longer = plan;;) {
    longer = with_more_listed(std::move(longer), missing);
    if (std::optional<ReplayResult> result = replay_listed(longer, machine, cost, options, missing))
      return *std::move(result);
  }
}

namespace {

/// Times of a compute task's operations, extended if the device waits for its host, so that they fill the
/// task.
std::vector<double> stretched_times_s(const Role& role, const Task& task, const TaskTimes& times,
                                      const Machine& machine, const CostModel& cost, EndpointId endpoint) {
  std::vector<double> op_times_s = operation_times_s(role, task, machine, cost, endpoint);
  double sum_s = 0;
  for (const double time_s : op_times_s) sum_s += time_s;
  const double length_s = times.end_s - times.start_s;
  constexpr double rounding = 1e-9;
  if (sum_s > 0 && length_s > sum_s * (1 + rounding))
    for (double& time_s : op_times_s) time_s *= length_s / sum_s;
  return op_times_s;
}

}  // namespace

std::vector<Span> spans_of(const ReplayResult& result, const Plan& plan, const Machine& machine,
                           const CostModel& cost, EndpointId endpoint) {
  std::vector<Span> spans;
  if (result.timeline_of[endpoint] == ReplayResult::no_timeline) return spans;
  const Timeline& timeline = result.timelines[result.timeline_of[endpoint]];
  const Role& role = plan.roles[timeline.role];
  for (TaskId t = 0; t < role.program.size(); ++t) {
    const Task& task = role.program[t];
    const TaskTimes& times = timeline.tasks[t];
    if (task.kind != Task::Kind::compute || task.ops.empty()) {
      if (times.end_s > times.start_s)
        spans.push_back(
            {task.name, task.stream, task.kind == Task::Kind::compute, times.start_s, times.end_s, t});
      continue;
    }
    const std::vector<double> op_times_s = stretched_times_s(role, task, times, machine, cost, endpoint);
    double start_s = times.start_s;
    for (std::size_t i = 0; i < op_times_s.size(); ++i) {
      if (op_times_s[i] == 0) continue;
      const double end_s =
          std::min(start_s + op_times_s[i], times.end_s);  // rounding must not make spans overlap
      spans.push_back({name_of(task, task.ops[i]), task.stream, true, start_s, end_s, t, &task.ops[i]});
      start_s = end_s;
    }
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.start_s < b.start_s;
  });
  return spans;
}

std::vector<MemoryPoint> memory_of(const ReplayResult& result, const Plan& plan, const Machine& machine,
                                   const CostModel& cost, EndpointId endpoint) {
  std::vector<MemoryPoint> points;
  if (result.timeline_of[endpoint] == ReplayResult::no_timeline) return points;
  const Timeline& timeline = result.timelines[result.timeline_of[endpoint]];
  const Role& role = plan.roles[timeline.role];
  MemoryLevel level = role.resident_bytes;
  constexpr double rounding_bytes = 1e-3;  // shares of tensors are no whole bytes, and leave a rest
  const auto change = [&](double time_s, const std::vector<MemoryDelta>& deltas, double sign) {
    if (deltas.empty()) return;
    for (const MemoryDelta& delta : deltas) {
      double& bytes = level[static_cast<std::size_t>(delta.memory_class)];
      bytes += sign * delta.bytes;
      if (std::abs(bytes) < rounding_bytes) bytes = 0;
    }
    points.push_back({time_s, level});
  };
  points.push_back({0, level});
  for (TaskId t = 0; t < role.program.size(); ++t) {
    const Task& task = role.program[t];
    if (task.ops.empty()) continue;
    const std::vector<double> op_times_s =
        stretched_times_s(role, task, timeline.tasks[t], machine, cost, endpoint);
    double time_s = timeline.tasks[t].start_s;
    for (std::size_t i = 0; i < task.ops.size(); ++i) {
      change(time_s, task.ops[i].allocates, 1);
      time_s =
          std::min(time_s + op_times_s[i], timeline.tasks[t].end_s);  // rounding must not pass the next task
      change(time_s, task.ops[i].frees, -1);
    }
  }
  return points;
}

}  // namespace convoy::replays
