// SPDX-License-Identifier: MIT
#include "sim/run/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/costs/residuals.h"
#include "sim/plan/process_memory.h"
#include "sim/run/evaluate.h"
#include "sim/run/trace.h"
#include "topologies/first_devices.h"

namespace convoy::inline runs {
namespace {

/// Of the fullest device.
struct Fullness {
  double share = 0, bytes = 0, memory_bytes = 0;
};

Fullness fullness_of(const ReplayResult& replayed, const Machine& machine) {
  Fullness fullest;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const double bytes = replayed.endpoints[d].peak_memory_bytes;
    const double memory_bytes = machine.device_types[machine.devices[d].type].memory_bytes;
    if (bytes / memory_bytes > fullest.share) fullest = {bytes / memory_bytes, bytes, memory_bytes};
  }
  return fullest;
}

/// The replay of a plan on the first devices of a machine.
struct Replayed {
  Machine machine;
  ReplayResult result;
};

Replayed replay_on(const Plan& plan, const PreparedRun& run, std::uint32_t devices) {
  Machine part = first_devices(run.phased->machine, devices);
  ReplayResult result = replay(plan, part, run.cost, {true, run.network_model});
  return {std::move(part), std::move(result)};
}

/// All that is known about a run with phases, in their order.
class RunTimeline {
 public:
  RunTimeline(const PreparedRun& run, const ReplayResult& last)
      : run_(run), machine_(run.phased->machine), phases_(run.phased->phases) {
    steps_.emplace(key_of(phases_.back()), Replayed{run.machine, last});
    for (const RunPhase& phase : phases_) {
      if (!steps_.contains(key_of(phase)))
        steps_.emplace(key_of(phase), replay_on(phase.plan, run, phase.devices));
      changes_.emplace_back();
      double pause_s = phase.change.pause_s;
      if (!phase.change.traffic.roles.empty()) {
        changes_.back() = replay_on(phase.change.traffic, run, phase.change.traffic_devices);
        pause_s += changes_.back()->result.step_time_s;
      }
      times_.push_back(
          {phase.at_step, step_of(phase).result.step_time_s, phase.change.preparation_s, pause_s});
    }
    starts_ = lay_out(times_);
  }

  const std::vector<PhaseStart>& starts() const { return starts_; }

  void fill(RunResult& result) const {
    Fullness fullest;
    ProcessMemory process;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const RunPhase& phase = phases_[i];
      const Replayed& step = step_of(phase);
      const Fullness of_phase = fullness_of(step.result, step.machine);
      const std::vector<std::int64_t>& images = phase.report.images_by_device;
      const auto [least, most] = std::minmax_element(images.begin(), images.end());
      result.phases.push_back({starts_[i].step, phase.devices, starts_[i].start_s, times_[i].step_time_s,
                               times_[i].step_time_s > 0 ? phase.plan.images / times_[i].step_time_s : 0,
                               *least, *most, of_phase.bytes});
      if (i > 0)
        result.reconfigurations.push_back({phase.at_step, phases_[i - 1].devices, phase.devices,
                                           times_[i].pause_s, pause_interval_s(i), starts_[i].step});
      if (of_phase.share > fullest.share) fullest = of_phase;
      for (const ProcessMemory& memory :
           process_memories(phase.plan, step.machine, run_.graph->options,
                            [&](std::size_t d) { return step.result.endpoints[d].peak_memory_bytes; }))
        if (memory.share() > process.share()) process = memory;
    }
    result.peak_memory_bytes = fullest.bytes;
    result.device_memory_bytes = fullest.memory_bytes;
    if (result.interval)
      result.interval->peak_memory_bytes = memory_range(fullest.bytes, run_.graph->options.framework);
    result.process_memory_bytes = process.bytes;
    result.fits = process.fits();
    if (!result.epoch_time_s) return;
    result.epoch_time_s =
        time_of_steps(times_, starts_, static_cast<double>(*run_.samples) / run_.plan.images);
    result.cost_usd_per_epoch = cost_usd(*result.epoch_time_s);
  }

  std::vector<TraceProcess> trace() const {
    TraceProcess overview{"phases", {{"steps", {}}, {"pauses", {}}, {"preparation", {}}}};
    std::vector<TraceProcess> hosts;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const double start_s = starts_[i].start_s;
      const bool last = i + 1 == phases_.size();
      const double steps =
          last ? phases_[i].plan.steps : static_cast<double>(starts_[i + 1].step - starts_[i].step);
      if (i > 0) {
        const std::string change =
            fmt::format("{} to {} devices", phases_[i - 1].devices, phases_[i].devices);
        if (times_[i].pause_s > 0) overview.threads[1].spans.push_back({change, pause_begins_s(i), start_s});
        if (times_[i].preparation_s > 0)
          overview.threads[2].spans.push_back(
              {change, asked_s(i), std::min(asked_s(i) + times_[i].preparation_s, pause_begins_s(i))});
        if (const std::optional<Replayed>& change_messages = changes_[i])
          append(hosts,
                 trace_of(phases_[i].change.traffic, change_messages->machine, run_.cost,
                          change_messages->result),
                 start_s - change_messages->result.step_time_s);
      }
      if (steps == 0) continue;  // the next change was requested before its first step
      overview.threads[0].spans.push_back(
          {fmt::format("{} devices{}", phases_[i].devices, last ? " from here on" : ""), start_s,
           start_s + steps * times_[i].step_time_s});
      const Replayed& step = step_of(phases_[i]);
      append(hosts, trace_of(phases_[i].plan, step.machine, run_.cost, step.result), start_s);
    }
    std::erase_if(overview.threads, [](const TraceThread& thread) { return thread.spans.empty(); });
    hosts.insert(hosts.begin(), std::move(overview));
    return hosts;
  }

  void for_each_stretch(const std::function<void(const RunStretch&)>& visit) const {
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const double start_s = starts_[i].start_s;
      if (const std::optional<Replayed>& messages = changes_[i])
        visit({start_s - messages->result.step_time_s, start_s, phases_[i].change.traffic, messages->machine,
               messages->result});
      const Replayed& step = step_of(phases_[i]);
      double end_s = std::numeric_limits<double>::infinity();
      if (i + 1 < phases_.size())
        end_s = start_s + static_cast<double>(starts_[i + 1].step - starts_[i].step) * times_[i].step_time_s;
      if (end_s > start_s) visit({start_s, end_s, phases_[i].plan, step.machine, step.result});
    }
  }

 private:
  /// The same devices divide the batch in the same way; they average parameters after every step, or every so
  /// many.
  using StepKey = std::pair<std::uint32_t, double>;
  static StepKey key_of(const RunPhase& phase) { return {phase.devices, phase.plan.steps}; }
  const Replayed& step_of(const RunPhase& phase) const { return steps_.at(key_of(phase)); }

  /// Of the parts of a restart that are not stated, and of messages as far as their kind is off elsewhere.
  std::array<double, 2> pause_interval_s(std::size_t i) const {
    const Reconfiguration& change = phases_[i].change;
    const double pause_s = times_[i].pause_s, messages_s = pause_s - change.pause_s;
    const std::optional<CommKind> kind = comm_kind(machine_);
    const double factor = kind ? std::exp(quantile_80 * comm_spread(*kind)) : 1;
    return {pause_s - std::hypot(change.shorter_s, messages_s - messages_s / factor),
            pause_s + std::hypot(change.longer_s, messages_s * factor - messages_s)};
  }

  double pause_begins_s(std::size_t i) const { return starts_[i].start_s - times_[i].pause_s; }
  /// When the change into phase i takes effect.
  double asked_s(std::size_t i) const {
    const PhaseStart& before = starts_[i - 1];
    const std::int64_t steps = std::max(times_[i].at_step, before.step) - before.step;
    return before.start_s + static_cast<double>(steps) * times_[i - 1].step_time_s;
  }

  /// Hosts are paid for from the pause before their phase to the next pause; new hosts from when they are
  /// requested, even if the time ends before they are ready. Nothing if a price is unknown.
  std::optional<double> cost_usd(double until_s) const {
    double cost = 0, price_before = 0;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const double begins_s = i > 0 ? pause_begins_s(i) : 0, comes_s = i > 0 ? asked_s(i) : 0;
      if (comes_s >= until_s) break;
      const std::optional<double> price = price_usd_per_h(step_of(phases_[i]).machine);
      if (!price) return std::nullopt;
      const double ends_s = i + 1 < phases_.size() ? std::min(until_s, pause_begins_s(i + 1)) : until_s;
      const double newcomers = i > 0 ? std::max(0.0, *price - price_before) : 0;
      cost += *price * std::max(0.0, ends_s - begins_s) + newcomers * (std::min(begins_s, until_s) - comes_s);
      price_before = *price;
    }
    constexpr double seconds_per_h = 3600;
    return cost / seconds_per_h;
  }

  const PreparedRun& run_;
  const Machine& machine_;
  const std::vector<RunPhase>& phases_;
  std::map<StepKey, Replayed> steps_;             ///< of the phases
  std::vector<std::optional<Replayed>> changes_;  ///< messages before each phase, if there are any
  std::vector<PhaseTimes> times_;
  std::vector<PhaseStart> starts_;
};

}  // namespace

std::vector<PhaseStart> lay_out(const std::vector<PhaseTimes>& phases) {
  std::vector<PhaseStart> starts;
  for (const PhaseTimes& phase : phases) {
    if (starts.empty()) {
      starts.push_back({phase.at_step, 0});
      continue;
    }
    const PhaseStart& before = starts.back();
    const double step_s = phases[starts.size() - 1].step_time_s;
    // A preparation that ends with a step, apart from rounding, takes no further step.
    const double steps = step_s > 0 ? std::ceil(phase.preparation_s / step_s - 1e-9) : 0;
    PhaseStart start;
    start.step = std::max(phase.at_step, before.step) + static_cast<std::int64_t>(std::max(0.0, steps));
    start.start_s = before.start_s + static_cast<double>(start.step - before.step) * step_s + phase.pause_s;
    if (step_s == 0) start.start_s += phase.preparation_s;
    starts.push_back(start);
  }
  return starts;
}

double time_of_steps(const std::vector<PhaseTimes>& phases, const std::vector<PhaseStart>& starts,
                     double steps) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (static_cast<double>(starts[i].step) < steps) last = i;
  return starts[last].start_s + (steps - static_cast<double>(starts[last].step)) * phases[last].step_time_s;
}

std::vector<PhaseStart> starts_of_phases(const PreparedRun& run) {
  return RunTimeline(run, replay(run.plan, run.machine, run.cost, {true, run.network_model})).starts();
}

void add_timeline(const PreparedRun& run, const ReplayResult& last, bool with_trace, RunOutput& output) {
  const RunTimeline timeline(run, last);
  timeline.fill(output.result);
  if (with_trace) output.trace = timeline.trace();
}

void for_each_stretch(const PreparedRun& run, const ReplayResult& last,
                      const std::function<void(const RunStretch&)>& visit) {
  if (run.phased)
    RunTimeline(run, last).for_each_stretch(visit);
  else
    visit({0, std::numeric_limits<double>::infinity(), run.plan, run.machine, last});
}

}  // namespace convoy::runs
