// SPDX-License-Identifier: MIT
#include "sim/run/watch_hosts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/lowering/input_feed.h"
#include "sim/plan/process_memory.h"
#include "sim/plan/repetition.h"
#include "sim/replay/traffic.h"
#include "sim/run/repeated_curve.h"
#include "sim/run/timeline.h"

namespace convoy::inline runs {
namespace {

/// What a host does in the steps of a stretch.
struct HostCurves {
  explicit HostCurves(double period_s)
      : sent(period_s), received(period_s), vcpus(period_s), gpus(period_s), gpu_tensors(period_s) {}
  RepeatedCurve sent, received;  ///< bytes per second
  RepeatedCurve vcpus, gpus;     ///< how many are busy
  RepeatedCurve gpu_tensors;     ///< bytes
  double process_bytes = 0;      ///< of the host's GPUs together
};

/// The curves of all hosts over one stretch.
class StretchCurves {
 public:
  StretchCurves(const PreparedRun& run, const InputSpec& input, const RunStretch& stretch)
      : plan_(stretch.plan),
        machine_(stretch.machine),
        cost_(run.cost),
        replayed_(stretch.replayed),
        step_s_(stretch.replayed.step_time_s),
        placed_(std::holds_alternative<OneStep>(stretch.plan.course)),
        period_s_(placed_ ? step_s_ * stretch.plan.steps : step_s_),
        hosts_(machine_.hosts.size(), HostCurves(period_s_)) {
    if (step_s_ <= 0) return;
    add_messages();
    for (EndpointId e = 0; e < machine_.endpoint_count(); ++e) add_endpoint(e);
    add_images(input);
    if (plan_.images == 0) return;  // messages of a change, beside which processes are what they were
    const std::vector<ProcessMemory> processes =
        process_memories(plan_, machine_, run.graph->options,
                         [&](std::size_t d) { return replayed_.endpoints[d].peak_memory_bytes; });
    for (std::size_t d = 0; d < machine_.devices.size(); ++d)
      hosts_[machine_.devices[d].host].process_bytes += processes[d].bytes;
  }

  std::vector<HostCurves> take() { return std::move(hosts_); }

 private:
  void add_messages() {
    const Traffic traffic(replayed_, plan_, machine_);
    for (std::uint32_t h = 0; placed_ && h < machine_.hosts.size(); ++h) {
      const std::vector<TrafficPoint> points = traffic.of_host(h);
      for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        hosts_[h].sent.add(points[i].time_s, points[i + 1].time_s, points[i].sent_Bps);
        hosts_[h].received.add(points[i].time_s, points[i + 1].time_s, points[i].received_Bps);
      }
    }
    if (!placed_) add_messages_of_paces();
    const double copies_Bps = machine_.transport.host_bandwidth_Bps;
    for (std::size_t l = 0; l < machine_.links.size(); ++l) {
      const Link& link = machine_.links[l];
      if (link.host == Link::no_host) continue;
      const double rate_Bps = replayed_.links[l].bytes / step_s_;
      // The medium of the transport's copies (Transport::host_bandwidth_Bps).
      if (link.kind == LinkKind::memory && link.direction == Link::Direction::both &&
          link.bandwidth_Bps == copies_Bps)
        hosts_[link.host].vcpus.add(rate_Bps / copies_Bps);
    }
  }

  /// Without a place in a common step messages count with their mean: those of a service as often as each device goes
  /// through its program. Messages with no way to go do not count.
  void add_messages_of_paces() {
    const std::vector<bool> is_answer = patterns_of_answers(plan_);
    Route route;
    const std::vector<double> bytes = step_bytes(plan_);
    for (std::size_t p = 0; p < plan_.patterns.size(); ++p)
      for (const std::vector<EndpointId>& group : plan_.patterns[p].groups)
        for (const Round& round : plan_.patterns[p].rounds)
          round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
            const EndpointId sender = group[from], receiver = group[to];
            if (machine_.host_of(sender) == machine_.host_of(receiver)) return;
            machine_.router->route(sender, receiver, route);
            if (route.links.empty()) return;
            const bool from_client = sender < machine_.devices.size() && !is_answer[p];
            const double times = plan_.service() ? replayed_.pace[from_client ? sender : receiver] : 1;
            const double rate_Bps = bytes[p] * fraction * round.repeat / step_s_ * times;
            hosts_[machine_.host_of(sender)].sent.add(rate_Bps);
            hosts_[machine_.host_of(receiver)].received.add(rate_Bps);
          });
  }

  void add_endpoint(EndpointId e) {
    if (replayed_.timeline_of[e] == ReplayResult::no_timeline) return;
    const Timeline& timeline = replayed_.timelines[replayed_.timeline_of[e]];
    const Role& role = plan_.roles[timeline.role];
    HostCurves& host = hosts_[machine_.host_of(e)];
    const bool is_device = e < machine_.devices.size();
    if (is_device) add_tensors(e, host.gpu_tensors);
    const double running_s = replayed_.endpoints[e].running_s();
    RepeatedCurve& busy = is_device ? host.gpus : host.vcpus;
    placed_ ? add_computing(role, timeline, running_s, busy) : busy.add(running_s / step_s_);
    if (is_device) add_issuing(e, role, host.vcpus);
  }

  /// While its tasks compute, an endpoint runs for `running_s` of a step: the host issues in the rest.
  void add_computing(const Role& role, const Timeline& timeline, double running_s,
                     RepeatedCurve& busy) const {
    std::vector<TaskTimes> stretches;
    for (TaskId t = 0; t < role.program.size(); ++t)
      if (role.program[t].kind == Task::Kind::compute && timeline.tasks[t].end_s > timeline.tasks[t].start_s)
        stretches.push_back(timeline.tasks[t]);
    std::stable_sort(stretches.begin(), stretches.end(),
                     [](const TaskTimes& a, const TaskTimes& b) { return a.start_s < b.start_s; });
    std::vector<TaskTimes> apart;  // streams that compute at the same time count once
    for (const TaskTimes& each : stretches) {
      if (apart.empty() || each.start_s > apart.back().end_s)
        apart.push_back(each);
      else
        apart.back().end_s = std::max(apart.back().end_s, each.end_s);
    }
    double all_s = 0;
    for (const TaskTimes& each : apart) all_s += each.end_s - each.start_s;
    if (all_s <= 0) return;
    const double share = running_s * plan_.steps / all_s;
    for (const TaskTimes& each : apart) busy.add(each.start_s, each.end_s, share);
  }

  /// The thread issues from the beginning of a step on and waits for nothing (IssueQueue).
  void add_issuing(EndpointId e, const Role& role, RepeatedCurve& vcpus) {
    const Device& device = machine_.devices[e];
    const DeviceType& type = machine_.device_types[device.type];
    const auto key = std::tuple(&role, device.type);
    auto known = issuing_s_.find(key);
    if (known == issuing_s_.end()) {
      double issuing_s = cost_.begin_s(type);
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops) issuing_s += cost_.issue_s(op.work, op.images, type);
      known = issuing_s_.emplace(key, issuing_s).first;
    }
    if (placed_ && plan_.steps == 1)
      vcpus.add(0, known->second, 1);
    else
      vcpus.add(std::min(1.0, known->second / length_s(e)));
  }

  /// How long the program of an endpoint lasts.
  double length_s(EndpointId e) const {
    if (placed_) return period_s_;
    double end_s = step_s_;
    for (const TaskTimes& task : replayed_.timelines[replayed_.timeline_of[e]].tasks)
      end_s = std::max(end_s, task.end_s);
    return end_s;
  }

  void add_tensors(EndpointId e, RepeatedCurve& tensors) const {
    const std::vector<MemoryPoint> points = memory_of(replayed_, plan_, machine_, cost_, e);
    const double end_s = length_s(e);
    double integral = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double until_s = i + 1 < points.size() ? points[i + 1].time_s : end_s;
      double bytes = 0;
      for (const double of_class : points[i].bytes) bytes += of_class;
      if (placed_) tensors.add(points[i].time_s, until_s, bytes);
      integral += bytes * std::max(0.0, until_s - points[i].time_s);
    }
    if (!placed_ && end_s > 0) tensors.add(integral / end_s);
  }

  void add_images(const InputSpec& input) {
    if (input.synthetic || !plan_.input) return;
    constexpr double vcpus_a_core = 2;
    const std::vector<double> images = images_by_host(plan_, machine_);
    for (std::size_t h = 0; h < hosts_.size(); ++h)
      hosts_[h].vcpus.add(vcpus_a_core * images[h] * core_image_s(input.library, input.image_pixels) /
                          step_s_);
  }

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  const ReplayResult& replayed_;
  double step_s_;
  bool placed_;      ///< tasks have their place in a step that all have in common
  double period_s_;  ///< of the curves
  std::vector<HostCurves> hosts_;
  std::map<std::tuple<const Role*, std::uint32_t>, double> issuing_s_;
};

/// Adds what a host does in a stretch to its samples.
/// @param start_s, to_s the stretch, as far as it is monitored
/// @param samples by number of the interval
void add_samples(const HostCurves& curves, double gpus, double start_s, double to_s, double every_s,
                 std::map<std::int64_t, MonitorSample>& samples) {
  for (auto i = static_cast<std::int64_t>(std::floor(start_s / every_s));
       static_cast<double>(i) * every_s < to_s; ++i) {
    const double begin_s = static_cast<double>(i) * every_s, end_s = static_cast<double>(i + 1) * every_s;
    const double a = std::max(begin_s, start_s) - start_s, b = std::min(end_s, to_s) - start_s;
    if (b <= a) continue;
    MonitorSample& sample = samples[i];
    sample.from_s = begin_s, sample.to_s = end_s;
    const auto mean = [&](const RepeatedCurve& curve) {
      constexpr double rounding = 1e-12;  // of differences of integrals
      const double until = curve.integral(b), bit = until - curve.integral(a);
      return std::abs(bit) > rounding * std::abs(until) ? bit / every_s : 0;
    };
    sample.sent_Bps += mean(curves.sent);
    sample.received_Bps += mean(curves.received);
    sample.busy_vcpus += mean(curves.vcpus);
    if (gpus == 0) continue;
    if (!sample.gpus) sample.gpus.emplace();
    sample.gpus->busy_share = std::min(1.0, sample.gpus->busy_share + mean(curves.gpus) / gpus);
    sample.gpus->tensor_bytes += mean(curves.gpu_tensors);
    if (curves.process_bytes > 0) sample.gpus->memory_bytes = curves.process_bytes;
  }
}

/// The interval after a sample, in which the host waits for a change and its processes are not there.
MonitorSample idle_after(const MonitorSample& before, double every_s) {
  MonitorSample idle;
  idle.from_s = before.to_s;
  idle.to_s = before.to_s + every_s;
  if (before.gpus) idle.gpus.emplace();
  return idle;
}

}  // namespace

std::vector<MonitoredHost> watch_hosts(const PreparedRun& run, const ReplayResult& replayed,
                                       const InputSpec& input, double every_s, double for_s) {
  const Machine& all = run.phased ? run.phased->machine : run.machine;
  const double watched_s = std::max(1.0, std::ceil(for_s / every_s - 1e-9)) * every_s;
  std::vector<std::map<std::int64_t, MonitorSample>> samples(all.hosts.size());
  std::map<std::string, std::size_t> place;  // phases have fewer hosts
  for (std::size_t h = 0; h < all.hosts.size(); ++h) place[all.hosts[h].name] = h;
  for_each_stretch(run, replayed, [&](const RunStretch& stretch) {
    const double to_s = std::min(stretch.end_s, watched_s);
    if (stretch.start_s >= to_s) return;
    const std::vector<HostCurves> hosts = StretchCurves(run, input, stretch).take();
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const Host& host = stretch.machine.hosts[h];
      add_samples(hosts[h], host.device_count, stretch.start_s, to_s, every_s,
                  samples.at(place.at(host.name)));
    }
  });
  std::vector<MonitoredHost> watched;
  for (std::size_t h = 0; h < all.hosts.size(); ++h) {
    MonitoredHost& host =
        watched.emplace_back(MonitoredHost{all.hosts[h].name, all.host_types[all.hosts[h].type].vcpus, {}});
    for (const auto& [interval, sample] : samples[h]) {
      // Between stretches the host is there and does nothing.
      while (!host.samples.empty() && 2 * (sample.from_s - host.samples.back().to_s) > every_s)
        host.samples.push_back(idle_after(host.samples.back(), every_s));
      host.samples.push_back(sample);
    }
  }
  return watched;
}

}  // namespace convoy::runs
