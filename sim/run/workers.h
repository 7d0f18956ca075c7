// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/run/worker_process.h"

namespace convoy::inline runs {

class WorkerPool;

/// Forked processes that do one list of items after another, and keep from each to the next what items have in
/// common. They begin with the first list, so that they know what was there then, and end with this object.
class Workers {
 public:
  /// @param work is called in the processes, and here where the machine refuses all of them: what it refers to has
  /// to be there as long as this object
  Workers(std::size_t jobs, FirstHalf work, WorkerOptions options = {});
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// As run_in_workers(). @param answered is told the place of an item in the list
  /// @returns false: stopped before all items were done
  bool run(const std::vector<WorkItem>& items,
           const std::function<void(std::size_t place, WorkerAnswer answer)>& answered);
  bool run(std::size_t count, const std::function<WorkItem(std::size_t place)>& item_at,
           const std::function<void(std::size_t place, WorkerAnswer answer)>& answered);

 private:
  std::size_t jobs_;
  std::unique_ptr<WorkerPool> pool_;
};

/// Does items 0 ... count - 1 in `jobs` forked processes, in any order, and calls `answered` here for each of
/// them. A process that crashes costs its item only ("failed", with the signal's name); an item whose process
/// was killed is tried a second time. An empty second half is not run: the answer is then empty bytes. Where
/// the machine refuses some of the processes there are fewer, and where it refuses all, the items are done
/// here. Workers die with this process.
/// @returns false: stopped before all items were done
bool run_in_workers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                    const std::function<void(std::size_t item, WorkerAnswer answer)>& answered,
                    const WorkerOptions& options = {});

/// Processors that this process may use, at least 1: how many processes work side by side unless told
/// otherwise.
std::size_t all_cores();

/// Memory of this machine.
double machine_memory_bytes();

}  // namespace convoy::runs
