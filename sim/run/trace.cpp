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

/// Spans without a stream may overlap; each goes to the first free lane.
std::vector<std::vector<TraceSpan>> in_lanes(std::vector<TraceSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) { return a.start_s < b.start_s; });
  std::vector<std::vector<TraceSpan>> lanes;
  for (TraceSpan& span : spans) {
    const auto free = std::find_if(lanes.begin(), lanes.end(),
                                   [&](const auto& lane) { return lane.back().end_s <= span.start_s; });
    (free == lanes.end() ? lanes.emplace_back() : *free).push_back(std::move(span));
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

TraceSpan traced(const Run& run, const ReplayResult& replayed, EndpointId endpoint, Span span) {
  const std::uint32_t timeline = replayed.timeline_of[endpoint];
  const Task& task = run.plan.roles[replayed.timelines[timeline].role].program[span.task];
  TraceSpan traced{std::move(span.name), span.start_s, span.end_s};
  if (span.op) {
    const Work& work = span.op->work;
    traced.flops = work.flops_per_image * span.op->images + work.flops_fixed;
    traced.memory_bytes = work.bytes_per_image * span.op->images + work.bytes_fixed;
    traced.images = span.op->images;
  }
  traced.bytes = exchanged_bytes(run.plan, task, endpoint);
  traced.critical = run.critical[timeline].contains(span.task);
  return traced;
}

void add_threads(const Run& run, const ReplayResult& replayed, EndpointId endpoint, TraceProcess& process) {
  const std::uint32_t timeline = replayed.timeline_of[endpoint];
  if (timeline == ReplayResult::no_timeline) return;
  const Role& role = run.plan.roles[replayed.timelines[timeline].role];
  const std::string name = short_name(run.machine, endpoint);
  std::map<int, std::vector<TraceSpan>> streams;
  for (Span& span : spans_of(replayed, run.plan, run.machine, run.cost, endpoint)) {
    const int stream = span.stream;
    streams[stream].push_back(traced(run, replayed, endpoint, std::move(span)));
  }
  std::vector<TraceSpan> messages = std::move(streams[Task::no_stream]);
  streams.erase(Task::no_stream);
  for (auto& [stream, spans] : streams)
    process.threads.push_back(
        {fmt::format("{} {}", name, role.streams[static_cast<std::size_t>(stream)]), std::move(spans)});
  std::size_t lane = 0;
  for (std::vector<TraceSpan>& spans : in_lanes(std::move(messages)))
    process.threads.push_back({fmt::format("{} messages {}", name, ++lane), std::move(spans)});
  if (endpoint >= run.machine.devices.size()) return;
  TraceMemory memory{fmt::format("{} memory", name), {}};
  for (const MemoryPoint& point : memory_of(replayed, run.plan, run.machine, run.cost, endpoint)) {
    // Several changes at the same time are one point.
    if (!memory.points.empty() && memory.points.back().time_s == point.time_s) memory.points.pop_back();
    memory.points.push_back({point.time_s, point.bytes});
  }
  process.memory.push_back(std::move(memory));
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
  std::vector<TraceProcess> processes;
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    const Host& host = machine.hosts[h];
    TraceProcess process{host.name, {}};
    for (EndpointId d = host.first_device; d < host.first_device + host.device_count; ++d)
      if (drawn(d)) add_threads(run, replayed, d, process);
    if (const EndpointId memory = machine.host_endpoint(h); drawn(memory))
      add_threads(run, replayed, memory, process);
    if (process.threads.empty()) continue;
    for (const TrafficPoint& point : traffic.of_host(h))
      process.traffic.push_back({point.time_s, point.sent_Bps, point.received_Bps});
    processes.push_back(std::move(process));
  }
  return processes;
}

void append(std::vector<TraceProcess>& trace, std::vector<TraceProcess> more, double after_s) {
  const auto named = [](auto& all, const std::string& name) -> auto& {
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    return it != all.end() ? *it : all.emplace_back();
  };
  for (TraceProcess& process : more) {
    TraceProcess& of_host = named(trace, process.name);
    of_host.name = process.name;
    for (TraceThread& thread : process.threads) {
      TraceThread& of_stream = named(of_host.threads, thread.name);
      of_stream.name = thread.name;
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
  }
}

}  // namespace convoy::runs
