// SPDX-License-Identifier: MIT
#include "sim/replay/paced_compute.h"

#include <algorithm>
#include <utility>

namespace convoy {

PacedCompute::PacedCompute(Engine& engine, std::vector<double> taken) : engine_(engine) {
  places_.reserve(taken.size());
  for (const double share : taken) places_.push_back({share, 0, 0, {}});
}

void PacedCompute::start(std::uint32_t endpoint_class, double alone_s, Callback done) {
  Place& place = places_[endpoint_class];
  settle(place);
  place.tasks.push_back({alone_s, 0, std::move(done)});
  schedule(endpoint_class, place.tasks.back());
}

void PacedCompute::collective_begins(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  settle(place);
  if (++place.collectives > 1 || place.taken == 0) return;
  for (Running& task : place.tasks) schedule(endpoint_class, task);
}

void PacedCompute::collective_ends(std::uint32_t endpoint_class) {
  Place& place = places_[endpoint_class];
  settle(place);
  if (--place.collectives > 0 || place.taken == 0) return;
  for (Running& task : place.tasks) schedule(endpoint_class, task);
}

/// Takes off what has been done at the rate so far.
void PacedCompute::settle(Place& place) {
  const double now_s = engine_.now_s();
  if (place.taken > 0)
    for (Running& task : place.tasks)
      task.left_s = std::max(0.0, task.left_s - (now_s - place.since_s) * place.rate());
  place.since_s = now_s;
}

/// Sets the timer of a task's end; an earlier one finds its ticket gone.
void PacedCompute::schedule(std::uint32_t endpoint_class, Running& task) {
  task.ticket = ++tickets_;
  engine_.after(task.left_s / places_[endpoint_class].rate(),
                [this, endpoint_class, ticket = task.ticket] { end(endpoint_class, ticket); });
}

void PacedCompute::end(std::uint32_t endpoint_class, std::uint64_t ticket) {
  Place& place = places_[endpoint_class];
  const auto task = std::find_if(place.tasks.begin(), place.tasks.end(),
                                 [&](const Running& running) { return running.ticket == ticket; });
  if (task == place.tasks.end()) return;
  settle(place);
  Callback done = std::move(task->done);
  place.tasks.erase(task);
  done();
}

}  // namespace convoy
