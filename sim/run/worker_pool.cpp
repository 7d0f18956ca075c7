// SPDX-License-Identifier: MIT
#include "sim/run/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>

#include <cmath>
#include <thread>
#include <utility>

#include "sim/base/quantity.h"

namespace convoy::inline runs {
namespace {

constexpr int tick_ms = 100;  ///< between questions whether to stop

}  // namespace

WorkerPool::~WorkerPool() {
  for (Worker& worker : workers_) {
    if (!worker.given.empty()) worker.process.kill();
    worker.process.stop();
  }
}

void WorkerPool::make_ready(std::size_t workers) {
  for (std::size_t w = 0; w < workers_.size(); ++w)
    if (!workers_[w].given.empty()) {
      workers_[w].process.kill();
      workers_[w].given.clear();
      restart(w);
    }
  while (workers_.size() < workers) {
    std::optional<WorkerProcess> process = WorkerProcess::start(work_, options_);
    if (!process) break;
    workers_.push_back({std::move(*process)});
  }
}

bool WorkerPool::may_know(std::size_t w, const WorkItem& item) const {
  if (!options_.about) return true;
  const auto known = knows_.find(options_.about(item));
  return known == knows_.end() || known->second == w;
}

void WorkerPool::give(std::size_t w, std::deque<Given> items) {
  if (options_.about)
    for (const Given& given : items) knows_[options_.about(given.item)] = w;
  workers_[w].given = std::move(items);
  send(workers_[w]);
}

std::optional<std::size_t> WorkerPool::wait() {
  for (std::size_t k = 0; k < workers_.size(); ++k) {
    const std::size_t w = (next_ + k) % workers_.size();
    if (workers_[w].process.answers().has_more()) return turn_of(w);
  }
  std::vector<pollfd> polled;
  for (const Worker& worker : workers_)
    polled.push_back({worker.given.empty() ? -1 : worker.process.answers().descriptor(), POLLIN, 0});
  const bool any = ::poll(polled.data(), polled.size(), tick_ms) > 0;
  for (std::size_t k = 0; k < workers_.size(); ++k) {
    const std::size_t w = (next_ + k) % workers_.size();
    if (any && polled[w].revents != 0) return turn_of(w);
    workers_[w].late = is_overdue(workers_[w]);
    if (workers_[w].late) return turn_of(w);
  }
  return std::nullopt;
}

WorkerPool::Taken WorkerPool::take(std::size_t w) {
  Worker& worker = workers_[w];
  const std::size_t place = worker.given.front().place;
  worker.given.pop_front();
  if (worker.late) {
    worker.process.kill();
    restart(w);
    return {place, too_late(options_)};
  }
  if (std::optional<WorkerAnswer> answer = receive_answer(worker.process.answers())) {
    if (answer->kind == WorkerAnswer::Kind::out_of_memory) {
      restart(w);  // it has ended
      if (const double allowed = allowed_memory_bytes(options_.memory_bytes); std::isfinite(allowed))
        answer->bytes = fmt::format("needs more than {} of memory", format_bytes(allowed));
    }
    worker.since = Clock::now();
    return {place, std::move(*answer)};
  }
  WorkerProcess::End end = restart(w);
  return {place, {WorkerAnswer::Kind::failed, std::move(end.how)}, end.killed};
}

std::size_t WorkerPool::turn_of(std::size_t w) {
  next_ = w + 1;
  return w;
}

bool WorkerPool::is_overdue(const Worker& worker) const {
  const std::chrono::duration<double> took_s = Clock::now() - worker.since;
  return !worker.given.empty() && took_s.count() > options_.time_s;
}

void WorkerPool::send(Worker& worker) {
  worker.since = Clock::now();
  std::vector<WorkItem> items;
  for (const Given& given : worker.given) items.push_back(given.item);
  if (!items.empty()) worker.process.send(items);
}

/// The new process begins with what the old one had left.
WorkerProcess::End WorkerPool::restart(std::size_t w) {
  Worker& worker = workers_[w];
  WorkerProcess::End end = worker.process.stop();
  std::optional<WorkerProcess> fresh = WorkerProcess::start(work_, options_);
  while (!fresh) {  // there was one before: the machine will have room again
    std::this_thread::sleep_for(std::chrono::milliseconds(tick_ms));
    fresh = WorkerProcess::start(work_, options_);
  }
  worker.process = std::move(*fresh);
  worker.late = false;
  send(worker);
  return end;
}

}  // namespace convoy::runs
