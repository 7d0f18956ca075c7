// SPDX-License-Identifier: MIT
#include "sim/replay/paced_compute.h"

#include <algorithm>
#include <utility>

namespace convoy::inline replays {

PacedCompute::PacedCompute(Engine& engine, std::vector<double> taken, bool collectives_owe)
    : engine_(engine), collectives_owe_(collectives_owe) {
  places_.reserve(taken.size());
  for (const double share : taken) places_.push_back({share, 0, 0, 0, {}, {}, {}});
}

void PacedCompute::start(std::uint32_t endpoint_class, double alone_s, Callback done) {
  Place& place = places_[endpoint_class];
  settle(place);
  place.tasks.push_back({alone_s, 0, std::move(done)});
  schedule(endpoint_class, place.tasks.back(), place.task_rate());
  if (place.tasks.size() == 1) schedule_owed(endpoint_class);
}

void PacedCompute::collective_begins(std::uint32_t endpoint_class, TaskId task) {
  Place& place = places_[endpoint_class];
  settle(place);
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
  settle(place);
  const double owed_s = place.taken * (place.computed_s - begun->computed_s);
  place.begun.erase(begun);
  if (owed_s == 0) return false;
  place.owed.push_back({owed_s, 0, std::move(done)});
  schedule(endpoint_class, place.owed.back(), place.owed_rate());
  return true;
}

void PacedCompute::collective_ends(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  settle(place);
  if (--place.collectives == 0 && place.taken > 0) schedule_tasks(endpoint_class);
}

/// Subtracts what has been done at the rates so far.
void PacedCompute::settle(Place& place) {
  const double now_s = engine_.now_s(), passed_s = now_s - place.since_s;
  place.since_s = now_s;
  if (place.taken == 0) return;
  if (!place.tasks.empty()) place.computed_s += passed_s;
  for (Running& task : place.tasks) task.left_s = std::max(0.0, task.left_s - passed_s * place.task_rate());
  for (Running& debt : place.owed) debt.left_s = std::max(0.0, debt.left_s - passed_s * place.owed_rate());
}

/// Sets the timer for the end of a task; an earlier timer finds that its ticket is no longer valid.
void PacedCompute::schedule(std::uint32_t endpoint_class, Running& task, double rate) {
  task.ticket = ++tickets_;
  engine_.after(task.left_s / rate,
                [this, endpoint_class, ticket = task.ticket] { end(endpoint_class, ticket); });
}

void PacedCompute::schedule_tasks(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  for (Running& task : place.tasks) schedule(endpoint_class, task, place.task_rate());
}

void PacedCompute::schedule_owed(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  for (Running& debt : place.owed) schedule(endpoint_class, debt, place.owed_rate());
}

void PacedCompute::end(std::uint32_t endpoint_class, std::uint64_t ticket) {
  Place& place = places_[endpoint_class];
  const auto has_ticket = [&](const Running& running) { return running.ticket == ticket; };
  for (std::vector<Running>* running : {&place.tasks, &place.owed}) {
    const auto task = std::find_if(running->begin(), running->end(), has_ticket);
    if (task == running->end()) continue;
    settle(place);
    Callback done = std::move(task->done);
    running->erase(task);
    if (running == &place.tasks && place.tasks.empty()) schedule_owed(endpoint_class);
    done();
    return;
  }
}

}  // namespace convoy::replays
