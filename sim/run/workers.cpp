// SPDX-License-Identifier: MIT
#include "sim/run/workers.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "sim/run/worker_pool.h"

namespace convoy::inline runs {

Workers::Workers(std::size_t jobs, FirstHalf work, WorkerOptions options)
    : jobs_(jobs), pool_(std::make_unique<WorkerPool>(std::move(work), std::move(options))) {}
Workers::~Workers() = default;

bool Workers::run(std::size_t count, const std::function<WorkItem(std::size_t)>& item_at,
                  const std::function<void(std::size_t, WorkerAnswer)>& answered) {
  if (count == 0) return true;
  WorkerPool& pool = *pool_;
  const auto stop = [&] { return pool.options().stop(); };
  pool.make_ready(std::min(jobs_, count));
  if (pool.size() == 0) {
    for (std::size_t place = 0; place < count && !stop(); ++place)
      answered(place, answer_to(item_at(place), pool.work(), false));
    return !stop();
  }
  std::deque<std::size_t> again;  // places of items whose process was killed
  std::set<std::size_t> tried;
  // Neighbours have most in common, which a process computes once: each gets a row of items. Rows become
  // shorter towards the end, so that nobody has several left while others have none.
  constexpr std::size_t longest_row = 32, rows_left = 4;
  std::size_t next = 0;                // place of the first item that is left for nobody else
  std::deque<std::size_t> for_others;  // places before it, of items that another worker may know
  std::size_t left = count;
  const auto give = [&](std::size_t w) {
    if (!again.empty()) {
      pool.give(w, {{again.front(), item_at(again.front())}});
      again.pop_front();
      return;
    }
    const std::size_t length =
        std::min(left, std::clamp<std::size_t>(left / (rows_left * pool.size()), 1, longest_row));
    std::deque<WorkerPool::Given> row;
    const auto take = [&](std::size_t place, const WorkItem& item) {
      row.push_back({place, item});
      --left;
    };
    for (auto place = for_others.begin(); place != for_others.end() && row.size() < length;) {
      const WorkItem item = item_at(*place);
      const bool takes = pool.may_know(w, item);
      if (takes) take(*place, item);
      place = takes ? for_others.erase(place) : std::next(place);
    }
    for (; next < count && row.size() < length; ++next) {
      const WorkItem item = item_at(next);
      if (pool.may_know(w, item))
        take(next, item);
      else
        for_others.push_back(next);
    }
    if (row.empty() && !for_others.empty()) {
      take(for_others.back(), item_at(for_others.back()));
      for_others.pop_back();
    }
    pool.give(w, std::move(row));
  };
  for (std::size_t w = 0; w < pool.size(); ++w) give(w);
  for (std::size_t got = 0; got < count;) {
    if (stop()) return false;
    const std::optional<std::size_t> w = pool.wait();
    if (!w) continue;
    WorkerPool::Taken taken = pool.take(*w);
    const bool retry = taken.killed && tried.insert(taken.place).second;
    if (retry) again.push_back(taken.place);
    if (pool.is_idle(*w)) give(*w);
    if (retry) continue;
    ++got;
    answered(taken.place, std::move(taken.answer));
  }
  return true;
}

bool Workers::run(const std::vector<WorkItem>& items,
                  const std::function<void(std::size_t, WorkerAnswer)>& answered) {
  return run(
      items.size(), [&](std::size_t place) { return items[place]; }, answered);
}

bool run_in_workers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                    const std::function<void(std::size_t, WorkerAnswer)>& answered,
                    const WorkerOptions& options) {
  WorkerOptions of_list = options;
  of_list.apart = options.apart && count > 1;
  return Workers(jobs, work, std::move(of_list)).run(count, std::identity{}, answered);
}

std::size_t all_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return static_cast<std::size_t>(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

double machine_memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace convoy::runs
