// SPDX-License-Identifier: MIT
#include "sim/replay/paced_compute.h"

#include <algorithm>
#include <utility>

namespace convoy::inline replays {

PacedCompute::PacedCompute(Engine& engine, std::vector<double> taken, const Stops& stops,
                           bool collectives_owe)
    : engine_(engine), stops_(stops), collectives_owe_(collectives_owe) {
  places_.reserve(taken.size());
  for (const double share : taken) places_.emplace_back().taken = share;
}

std::optional<double> PacedCompute::start(std::uint32_t endpoint_class, const TaskWork& work,
                                          double step_began_s, Callback done) {
  const double device_s = work.device_s * work.slowness;
  const double begins_s = own_time_s(endpoint_class, engine_.now_s());
  double alone_s = device_s;
  if (work.issued) alone_s = work.end_s(begins_s - step_began_s) - (begins_s - step_began_s);
  const double duration_s = stops_.with_stops_s(endpoint_class, engine_.now_s(), alone_s);
  if (duration_s == 0) return std::nullopt;
  const double wait_s = std::max(0.0, alone_s - device_s);
  Place& place = places_[endpoint_class];
  settle(endpoint_class);
  place.tasks.push_back({work, step_began_s, begins_s, wait_s, 0, std::move(done)});
  if (place.task_rate() == 1)
    place.tasks.back().ticket = set_timer(endpoint_class, duration_s);
  else
    schedule(endpoint_class, place.tasks.back());
  if (place.tasks.size() == 1) schedule_owed(endpoint_class);
  return wait_s;
}

double PacedCompute::take_more_wait_s(std::uint32_t endpoint_class) {
  return std::exchange(places_[endpoint_class].more_wait_s, 0.0);
}

void PacedCompute::collective_begins(std::uint32_t endpoint_class, TaskId task) {
  Place& place = places_[endpoint_class];
  settle(endpoint_class);
  ++place.collectives;
  if (place.taken == 0) return;
  if (collectives_owe_) place.begun.push_back({task, place.computed_s});
  if (place.collectives == 1) schedule_tasks(endpoint_class);
}

bool PacedCompute::works_off(std::uint32_t endpoint_class, TaskId task, Callback done) {
  Place& place = places_[endpoint_class];
  const auto begun = std::find_if(place.begun.begin(), place.begun.end(),
                                  [&](const Begun& collective) { return collective.task == task; });
  if (begun == place.begun.end()) return false;
  settle(endpoint_class);
  const double owed_s = place.taken * (place.computed_s - begun->computed_s);
  place.begun.erase(begun);
  if (owed_s == 0) return false;
  place.owed.push_back({owed_s, 0, std::move(done)});
  place.owed.back().ticket = set_timer(endpoint_class, owed_s / place.owed_rate());
  return true;
}

void PacedCompute::collective_ends(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  settle(endpoint_class);
  if (--place.collectives == 0 && place.taken > 0) schedule_tasks(endpoint_class);
}

/// Takes off what has been done at the rates so far.
void PacedCompute::settle(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  const double before_s = std::exchange(place.since_s, engine_.now_s());
  if (place.taken == 0) return;
  const double passed_s = place.since_s - before_s, rate = place.task_rate();
  if (!place.tasks.empty()) place.computed_s += passed_s;
  const double from_s = own_time_s(endpoint_class, before_s);
  const double until_s = own_time_s(endpoint_class, place.since_s);
  for (Running& task : place.tasks) {
    const double done_s =
        task.work.done_at_s(from_s - task.step_began_s, task.done_s, until_s - task.step_began_s, rate);
    task.ran_s += (done_s - task.done_s) * task.work.slowness / rate;
    task.done_s = done_s;
    task.slowed = task.slowed || (rate < 1 && passed_s > 0);
  }
  for (Debt& debt : place.owed) debt.left_s = std::max(0.0, debt.left_s - passed_s * place.owed_rate());
}

/// Of something's end; an earlier one finds its ticket gone.
std::uint64_t PacedCompute::set_timer(std::uint32_t endpoint_class, double duration_s) {
  const std::uint64_t ticket = ++tickets_;
  engine_.after(duration_s) = End{this, endpoint_class, ticket};
  return ticket;
}

void PacedCompute::schedule(std::uint32_t endpoint_class, Running& task) {
  const Place& place = places_[endpoint_class];
  const double now_s = own_time_s(endpoint_class, place.since_s) - task.step_began_s;
  const double left_s = task.work.end_s(now_s, task.done_s, place.task_rate()) - now_s;
  task.ticket =
      set_timer(endpoint_class, stops_.with_stops_s(endpoint_class, place.since_s, std::max(0.0, left_s)));
}

void PacedCompute::schedule_tasks(std::uint32_t endpoint_class) {
  for (Running& task : places_[endpoint_class].tasks) schedule(endpoint_class, task);
}

void PacedCompute::schedule_owed(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  for (Debt& debt : place.owed) debt.ticket = set_timer(endpoint_class, debt.left_s / place.owed_rate());
}

void PacedCompute::end(std::uint32_t endpoint_class, std::uint64_t ticket) {
  Place& place = places_[endpoint_class];
  const auto has_ticket = [&](const auto& running) { return running.ticket == ticket; };
  const auto task = std::find_if(place.tasks.begin(), place.tasks.end(), has_ticket);
  const auto debt = std::find_if(place.owed.begin(), place.owed.end(), has_ticket);
  if (task == place.tasks.end() && debt == place.owed.end()) return;
  settle(endpoint_class);
  Callback done;
  if (task != place.tasks.end()) {
    if (task->may_wait_less()) {
      const double waited_s = own_time_s(endpoint_class, place.since_s) - task->began_s - task->ran_s;
      place.more_wait_s += std::max(0.0, waited_s) - task->expected_wait_s;
    }
    done = std::move(task->done);
    place.tasks.erase(task);
    if (place.tasks.empty()) schedule_owed(endpoint_class);
  } else {
    done = std::move(debt->done);
    place.owed.erase(debt);
  }
  done();
}

}  // namespace convoy::replays
