// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace convoy {

/// How an item ended.
struct WorkerAnswer {
  enum class Kind { done, input_error, failed };
  Kind kind = Kind::failed;
  std::string bytes;  ///< what the work returned, or the error's text
};

/// The work of one item in two halves: the first runs in a worker that goes on to further items (so it may
/// keep what they share), the second in a process of its own.
using SecondHalf = std::function<std::string()>;
using FirstHalf = std::function<SecondHalf(std::size_t item)>;

/// Does items 0 ... count - 1 in `jobs` forked processes, in any order, and calls `answered` here for each of
/// them. A process that crashes costs its item only ("failed", with the signal's name). An empty second half
/// is not run: the answer is then empty bytes.
/// @pre SIGPIPE is ignored.
/// @throws std::runtime_error when processes or pipes cannot be had.
void run_in_workers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                    const std::function<void(std::size_t item, WorkerAnswer answer)>& answered);

/// Runs both halves here. What they throw passes through.
std::string run_here(std::size_t item, const FirstHalf& work);

/// Processors of this machine, at least 1: how many processes work side by side unless told otherwise.
std::size_t all_cores();

}  // namespace convoy
