// SPDX-License-Identifier: MIT
#include "sim/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/replay/traffic.h"
#include "sim/run/critical_path.h"

namespace convoy::inline runs {
namespace {

constexpr std::size_t drawn_in_full = 64;

/// "n0.gpu3" on host "n0" -> "gpu3"; the host itself, and the only device of a host, -> its name.
std::string short_name(const Machine& machine, EndpointId endpoint) {
  if (endpoint >= machine.devices.size()) return "host";
  const Device& device = machine.devices[endpoint];
  const Host& host = machine.hosts[device.host];
  return host.device_count > 1 ? device.name.substr(host.name.size() + 1) : "device";
}

/// A span of a task.
struct TaskSpan {
  TraceSpan span;
  TaskId task;
};

/// Spans without a stream may overlap; each goes to the first free lane.
std::vector<std::vector<TaskSpan>> in_lanes(std::vector<TaskSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TaskSpan& a, const TaskSpan& b) { return a.span.start_s < b.span.start_s; });
  std::vector<std::vector<TaskSpan>> lanes;
  for (TaskSpan& one : spans) {
    const auto free = std::find_if(lanes.begin(), lanes.end(), [&](const auto& lane) {
      return lane.back().span.end_s <= one.span.start_s;
    });
    (free == lanes.end() ? lanes.emplace_back() : *free).push_back(std::move(one));
  }
  return lanes;
}

/// What has been replayed.
struct Run {
  const Plan& plan;
  const Machine& machine;
  const CostModel& cost;
  std::vector<std::set<TaskId>> critical;  ///< by timeline
};

/// The payload that an endpoint sends and receives in a task.
double exchanged_bytes(const Plan& plan, const Task& task, EndpointId endpoint) {
  if (task.kind == Task::Kind::compute) return 0;
  const Communication& communication = plan.communications[task.comm];
  const Pattern& pattern = plan.patterns[communication.pattern];
  double fractions = 0;
  for (const std::vector<EndpointId>& group : pattern.groups) {
    const auto found = std::find(group.begin(), group.end(), endpoint);
    if (found == group.end()) continue;
    const auto self = static_cast<std::uint32_t>(found - group.begin());
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        const bool counts = (from == self && task.kind != Task::Kind::receive) ||
                            (to == self && task.kind != Task::Kind::send);
        if (counts) fractions += fraction * round.repeat;
      });
  }
  return fractions * communication.bytes;
}

/// "64>256 1x1, 56x56": channels, window and output of what a device computes; of a part of a layer, its own.
std::string shape_of(const Work& work) {
  if (work.out_channels == 0) return {};
  std::string shape = fmt::format("{}>{}", work.in_channels, work.out_channels);
  if (work.kernel_h > 0) shape += fmt::format(" {}x{}", work.kernel_h, work.kernel_w);
  if (work.groups > 1) shape += fmt::format(" in {} groups", work.groups);
  if (work.out_h > 0 && work.out_w > 0) shape += fmt::format(", {}x{}", work.out_h, work.out_w);
  return shape;
}

TraceSpan traced(const Run& run, const ReplayResult& replayed, EndpointId endpoint, Span span) {
  const std::uint32_t timeline = replayed.timeline_of[endpoint];
  const Task& task = run.plan.roles[replayed.timelines[timeline].role].program[span.task];
  TraceSpan traced{std::move(span.name), span.start_s, span.end_s};
  if (span.op) {
    const Work& work = span.op->work;
    traced.flops = work.flops_per_image * span.op->images + work.flops_fixed;
    traced.memory_bytes = work.bytes_per_image * span.op->images + work.bytes_fixed;
    traced.images = span.op->images;
    traced.shape = shape_of(work);
  }
  traced.bytes = exchanged_bytes(run.plan, task, endpoint);
  traced.critical = run.critical[timeline].contains(span.task);
  return traced;
}

/// Where the spans of a task are drawn: of several, the first begins and the last ends.
struct DrawnTask {
  std::size_t process = 0;  ///< index
  std::int64_t first_thread = 0, last_thread = 0;
  double start_s = 0, end_s = 0;
};
using DrawnTasks = std::map<std::pair<EndpointId, TaskId>, DrawnTask>;
using SendTasks = std::map<std::pair<std::uint32_t, CommId>, TaskId>;  ///< by role

SendTasks send_tasks(const Plan& plan) {
  SendTasks sends;
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (TaskId t = 0; t < plan.roles[r].program.size(); ++t)
      if (const Task& task = plan.roles[r].program[t]; task.kind == Task::Kind::send)
        sends.emplace(std::pair(r, task.comm), t);
  return sends;
}

/// What is drawn so far.
struct Drawing {
  std::vector<TraceProcess> processes;
  DrawnTasks tasks;

  /// Adds a thread to the last process, and notes where the tasks of the endpoint are.
  void add_thread(EndpointId endpoint, std::string name, std::vector<TaskSpan> spans) {
    TraceProcess& process = processes.back();
    const auto thread = static_cast<std::int64_t>(process.threads.size());
    TraceThread& drawn = process.threads.emplace_back(TraceThread{std::move(name), {}});
    for (TaskSpan& one : spans) {
      const double start_s = one.span.start_s, end_s = one.span.end_s;
      const auto [at, is_new] = tasks.try_emplace(
          {endpoint, one.task}, DrawnTask{processes.size() - 1, thread, thread, start_s, end_s});
      DrawnTask& task = at->second;
      if (!is_new && start_s < task.start_s) task.start_s = start_s, task.first_thread = thread;
      if (!is_new && end_s >= task.end_s) task.end_s = end_s, task.last_thread = thread;
      drawn.spans.push_back(std::move(one.span));
    }
  }

  /// Draws an arrow where both tasks are drawn: from the end of one to the beginning of another that waits for
  /// it, or of a message from the beginning of its sending to the end of its receiving, which may begin earlier.
  /// A reader finds a span by a time inside it.
  void add_arrow(const std::pair<EndpointId, TaskId>& from, const std::pair<EndpointId, TaskId>& to,
                 bool is_message = false) {
    const auto begin = tasks.find(from), end = tasks.find(to);
    if (begin == tasks.end() || end == tasks.end()) return;
    const auto last_s = [](const DrawnTask& task) {
      constexpr double inside_s = 1e-9;
      return std::max(task.start_s, task.end_s - inside_s);
    };
    const DrawnTask &source = begin->second, &sink = end->second;
    processes[source.process].arrows.push_back({arrows, is_message ? source.first_thread : source.last_thread,
                                                is_message ? source.start_s : last_s(source), true});
    processes[sink.process].arrows.push_back({arrows, is_message ? sink.last_thread : sink.first_thread,
                                              is_message ? last_s(sink) : sink.start_s, false});
    ++arrows;
  }
  std::int64_t arrows = 0;
};

void add_threads(const Run& run, const ReplayResult& replayed, EndpointId endpoint, Drawing& drawing) {
  const std::uint32_t timeline = replayed.timeline_of[endpoint];
  if (timeline == ReplayResult::no_timeline) return;
  const Role& role = run.plan.roles[replayed.timelines[timeline].role];
  const std::string name = short_name(run.machine, endpoint);
  std::map<int, std::vector<TaskSpan>> streams;
  for (Span& span : spans_of(replayed, run.plan, run.machine, run.cost, endpoint)) {
    const int stream = span.stream;
    const TaskId task = span.task;
    streams[stream].push_back({traced(run, replayed, endpoint, std::move(span)), task});
  }
  std::vector<TaskSpan> messages = std::move(streams[Task::no_stream]);
  streams.erase(Task::no_stream);
  for (auto& [stream, spans] : streams)
    drawing.add_thread(endpoint, fmt::format("{} {}", name, role.streams[static_cast<std::size_t>(stream)]),
                       std::move(spans));
  std::size_t lane = 0;
  for (std::vector<TaskSpan>& spans : in_lanes(std::move(messages)))
    drawing.add_thread(endpoint, fmt::format("{} messages {}", name, ++lane), std::move(spans));
  if (endpoint >= run.machine.devices.size()) return;
  TraceMemory memory{fmt::format("{} memory", name), {}};
  for (const MemoryPoint& point : memory_of(replayed, run.plan, run.machine, run.cost, endpoint)) {
    // Several changes at the same time are one point.
    if (!memory.points.empty() && memory.points.back().time_s == point.time_s) memory.points.pop_back();
    memory.points.push_back({point.time_s, point.bytes});
  }
  drawing.processes.back().memory.push_back(std::move(memory));
}

/// Arrows from what a task of an endpoint waits for: tasks before it that are on other streams, of a receive
/// the sends of its messages.
void add_arrows(const Run& run, const ReplayResult& replayed, EndpointId endpoint, const SendTasks& sends,
                Drawing& drawing) {
  const std::uint32_t timeline = replayed.timeline_of[endpoint];
  if (timeline == ReplayResult::no_timeline) return;
  const std::vector<Task>& program = run.plan.roles[replayed.timelines[timeline].role].program;
  for (TaskId t = 0; t < program.size(); ++t) {
    const Task& task = program[t];
    for (const TaskId before : task.after)
      if (task.stream == Task::no_stream || program[before].stream != task.stream)
        drawing.add_arrow({endpoint, before}, {endpoint, t});
    if (task.kind != Task::Kind::receive) continue;
    const Pattern& pattern = run.plan.patterns[run.plan.communications[task.comm].pattern];
    std::set<EndpointId> senders;
    for (const std::vector<EndpointId>& group : pattern.groups)
      for (const Round& round : pattern.rounds)
        round.for_each_message([&](std::uint32_t from, std::uint32_t to, double) {
          if (to < group.size() && group[to] == endpoint) senders.insert(group[from]);
        });
    for (const EndpointId sender : senders) {
      const std::uint32_t of_sender = replayed.timeline_of[sender];
      if (of_sender == ReplayResult::no_timeline) continue;
      const auto sent = sends.find({replayed.timelines[of_sender].role, task.comm});
      if (sent != sends.end()) drawing.add_arrow({sender, sent->second}, {endpoint, t}, true);
    }
  }
}

}  // namespace

std::vector<TraceProcess> trace_of(const Plan& plan, const Machine& machine, const CostModel& cost,
                                   const ReplayResult& replayed) {
  const Run run{plan, machine, cost, critical_path(plan, replayed)};
  const bool all = machine.devices.size() <= drawn_in_full;
  const auto drawn = [&](EndpointId endpoint) {
    const std::uint32_t timeline = replayed.timeline_of[endpoint];
    return timeline != ReplayResult::no_timeline &&
           (all || replayed.timelines[timeline].representative == endpoint);
  };
  const Traffic traffic(replayed, plan, machine);
  Drawing drawing;
  std::vector<EndpointId> endpoints;
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    const Host& host = machine.hosts[h];
    drawing.processes.push_back({host.name, {}});
    const auto draw = [&](EndpointId endpoint) {
      if (!drawn(endpoint)) return;
      add_threads(run, replayed, endpoint, drawing);
      endpoints.push_back(endpoint);
    };
    for (EndpointId d = host.first_device; d < host.first_device + host.device_count; ++d) draw(d);
    draw(machine.host_endpoint(h));
    TraceProcess& process = drawing.processes.back();
    if (process.threads.empty()) {
      drawing.processes.pop_back();
      continue;
    }
    for (const TrafficPoint& point : traffic.of_host(h))
      process.traffic.push_back({point.time_s, point.sent_Bps, point.received_Bps});
  }
  const SendTasks sends = send_tasks(plan);
  for (const EndpointId endpoint : endpoints) {
    if (static_cast<std::size_t>(drawing.arrows) > most_trace_events) break;  // more than are kept
    add_arrows(run, replayed, endpoint, sends, drawing);
  }
  return std::move(drawing.processes);
}

void append(std::vector<TraceProcess>& trace, std::vector<TraceProcess> more, double after_s) {
  const auto named = [](auto& all, const std::string& name) -> auto& {
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    return it != all.end() ? *it : all.emplace_back();
  };
  std::int64_t first_arrow = 0;
  for (const TraceProcess& process : trace)
    for (const TraceArrowEnd& end : process.arrows) first_arrow = std::max(first_arrow, end.id + 1);
  for (TraceProcess& process : more) {
    TraceProcess& of_host = named(trace, process.name);
    of_host.name = process.name;
    std::vector<std::int64_t> places;  // of its threads, there
    for (TraceThread& thread : process.threads) {
      TraceThread& of_stream = named(of_host.threads, thread.name);
      of_stream.name = thread.name;
      places.push_back(&of_stream - of_host.threads.data());
      for (TraceSpan& span : thread.spans) {
        span.start_s += after_s, span.end_s += after_s;
        of_stream.spans.push_back(std::move(span));
      }
    }
    for (const TraceMemory& memory : process.memory) {
      TraceMemory& of_device = named(of_host.memory, memory.name);
      of_device.name = memory.name;
      for (const TraceMemoryPoint& point : memory.points)
        of_device.points.push_back({point.time_s + after_s, point.bytes});
    }
    for (const TraceTrafficPoint& point : process.traffic)
      of_host.traffic.push_back({point.time_s + after_s, point.sent_Bps, point.received_Bps});
    for (const TraceArrowEnd& end : process.arrows)
      of_host.arrows.push_back({first_arrow + end.id, places[static_cast<std::size_t>(end.thread)],
                                end.time_s + after_s, end.begins});
  }
}

}  // namespace convoy::runs
