// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/run/worker_process.h"

namespace convoy::inline runs {

/// Worker processes, and which items of a list each of them has.
class WorkerPool {
 public:
  struct Given {
    std::size_t place;  ///< in the list
    WorkItem item;
  };

  WorkerPool(FirstHalf work, WorkerOptions options) : work_(std::move(work)), options_(std::move(options)) {}
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t size() const { return workers_.size(); }
  const FirstHalf& work() const { return work_; }
  const WorkerOptions& options() const { return options_; }

  /// Starts processes until there are so many, or the machine refuses one, and ends what an earlier list left
  /// unfinished.
  void make_ready(std::size_t workers);

  bool is_idle(std::size_t w) const { return workers_[w].given.empty(); }

  /// Whether no worker but this one had the last item about the same thing.
  bool may_know(std::size_t w, const WorkItem& item) const;

  /// Items that the worker does one after the other. @pre it is idle
  void give(std::size_t w, std::deque<Given> items);

  /// Waits a moment for a worker that has something to say, or that has been at its item for too long. They take
  /// turns.
  std::optional<std::size_t> wait();

  struct Taken {
    std::size_t place;
    WorkerAnswer answer;
    bool killed = false;  ///< by somebody else
  };

  /// The answer to the first item that the worker has. A process that ended goes on, as a new one, with the next.
  Taken take(std::size_t w);

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    WorkerProcess process;
    std::deque<Given> given{};  ///< the first is under way
    Clock::time_point since{};  ///< when it began, or a little later
    bool late = false;
  };

  std::size_t turn_of(std::size_t w);
  bool is_overdue(const Worker& worker) const;
  static void send(Worker& worker);
  WorkerProcess::End restart(std::size_t w);

  FirstHalf work_;
  WorkerOptions options_;
  std::vector<Worker> workers_;
  std::size_t next_ = 0;  ///< whose turn it is to be asked first
  std::unordered_map<std::size_t, std::size_t>
      knows_;  ///< by what items are about: the worker that had the last
};

}  // namespace convoy::runs
