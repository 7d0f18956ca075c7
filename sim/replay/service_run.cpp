// SPDX-License-Identifier: MIT
#include "sim/replay/service_run.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace convoy::inline replays {

ServiceRun::ServiceRun(const FoldedPlan& folded, const Surroundings& surroundings,
                       const Measurement& measurement)
    : ProgramRunner(folded, surroundings),
      desk_(folded.plan, folded.machine, folded.table, folded.folding, engine_, transfers_, *this,
            surroundings.service_log),
      log_(surroundings.service_log),
      measurement_(measurement),
      steady_(*folded.plan.service(), folded.folding, !folded.plan.input && surroundings.disturbances.empty(),
              measurement),
      shown_(class_count()),
      input_wait_s_(class_count(), 0) {}

Execution ServiceRun::run() {
  if (steady_.is_warm()) open_ = all_readings();
  std::vector<char> begun(class_count(), 0);
  for (const Service::Client& client : plan_.service()->clients) {
    const std::uint32_t c = folding_.endpoint_class[client.device];
    if (std::exchange(begun[c], 1)) continue;
    const double start_s =
        measurement_.number == 0 ? client.start_s : steady_.phase(c) * measurement_.begin_within_s;
    engine_.after(start_s) = [this, c] {
      begin_step(c);
      drain();
    };
  }
  engine_.run();
  if (!steady_.is_over()) throw std::runtime_error("the plan cannot finish: its clients wait for each other");
  return result();
}

/// Shares of what has been measured that one step has.
Execution ServiceRun::result() {
  Execution execution;
  execution.end_s = steady_.step_time_s(plan_.images);
  execution.doubt = steady_.doubt();
  execution.timelines = std::move(timelines_);
  const double window_s = closed_.now_s - open_.now_s;
  const auto in_step = [&](double from, double to) {
    return window_s > 0 ? (to - from) / window_s * execution.end_s : 0;
  };
  for (std::uint32_t c = 0; c < class_count(); ++c) {
    if (steady_.is_client(c)) {
      add_client(c, execution);
      continue;
    }
    execution.usage.push_back({{in_step(open_.adding_s[c], closed_.adding_s[c]), 0, {}}, 0});
    execution.pace.push_back(0);
  }
  for (std::size_t l = 0; l < open_.link_busy_s.size(); ++l)
    execution.link_busy_s.push_back(in_step(open_.link_busy_s[l], closed_.link_busy_s[l]));
  for (std::size_t p = 0; p < open_.port_busy_s.size(); ++p)
    execution.port_busy_s.push_back(in_step(open_.port_busy_s[p], closed_.port_busy_s[p]));
  execution.staleness = desk_.staleness(open_.now_s, closed_.now_s);
  return execution;
}

void ServiceRun::add_client(std::uint32_t c, Execution& execution) {
  const double step_s = execution.end_s;
  const SteadyState::Client& client = steady_.client(c);
  const bool moves = client.end_s > client.begin_s;
  const double pace = moves ? step_s / client.mean_step_s() : 1;
  const double share = moves ? pace / static_cast<double>(client.steps) : 0;
  DeviceTimes times = client.times * share;
  times.compute_s = std::min(step_s, times.compute_s / client.mean_stretch());
  times.issue_wait_s = std::min(times.compute_s, times.issue_wait_s);
  times.comm.exposed_s = std::min(step_s - times.compute_s, times.comm.exposed_s);
  execution.usage.push_back({without_slowdown(c, times), step_s});
  execution.pace.push_back(pace);
  execution.input_wait_s =
      std::max(execution.input_wait_s, pace * input_wait_s_[c] / static_cast<double>(client.steps));
  execution.timelines[c].tasks = std::move(shown_[c]);
}

void ServiceRun::task_ended(std::uint32_t c, TaskId) {
  const Progress& progress = progress_[c];
  if (progress.done_count == progress.missing.size()) end_step(c);
}

void ServiceRun::begin_step(std::uint32_t c) {
  Progress& progress = progress_[c];
  const double now_s = engine_.now_s();
  rewind(c);
  progress.step_began_s = now_s;
  progress.stretch = steady_.next_stretch(c);
  progress.recorded = steady_.is_warm() && shown_[c].empty();
  if (!steady_.is_over()) steady_.step_begins(c, now_s, progress.clock, desk_.version(c));
  desk_.begin_step(c);
  const double wait_s = images_at_s(c) - now_s;
  if (wait_s <= 0) {
    begin(c);
    return;
  }
  if (steady_.client(c).measured) input_wait_s_[c] += wait_s;
  engine_.after(wait_s) = [this, c] {
    begin(c);
    drain();
  };
}

/// When the client's next batch is ready, at the earliest now.
double ServiceRun::images_at_s(std::uint32_t c) {
  const EndpointId endpoint = folding_.endpoints[c];
  if (!plan_.input || endpoint >= machine_.devices.size()) return engine_.now_s();
  const double interval_s = plan_.input->interval_s[machine_.devices[endpoint].host];
  return inputs_.try_emplace(c, interval_s, plan_.input->prefetch).first->second.take(engine_.now_s());
}

void ServiceRun::end_step(std::uint32_t c) {
  ++steps_;
  steps_measured_ += steady_.is_over() ? 0 : 1;
  if (steady_.is_over()) {
    if (!is_logged_further()) return;
    steady_.count_step(c);
    begin_step(c);
    return;
  }
  const bool was_warm = steady_.is_warm();
  steady_.step_ends(c, engine_.now_s(), progress_[c].clock, desk_.version(c));
  if (!was_warm && steady_.is_warm()) open_ = all_readings();
  if (steady_.is_over()) closed_ = all_readings();
  if (progress_[c].recorded) {
    shown_[c] = timelines_[c].tasks;
    for (TaskTimes& times : shown_[c]) times.start_s -= open_.now_s, times.end_s -= open_.now_s;
  }
  if (!steady_.is_over() || is_logged_further()) begin_step(c);
}

bool ServiceRun::is_logged_further() const { return log_ && steps_ < log_->steps_wanted; }

Readings ServiceRun::all_readings() {
  Readings result = readings();
  for (std::uint32_t c = 0; c < class_count(); ++c)
    result.adding_s.push_back(desk_.adding_s(c, result.now_s));
  return result;
}

}  // namespace convoy::replays
