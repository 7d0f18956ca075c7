// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"
#include "sim/search/trial_state.h"

namespace convoy::inline search {

/// What a process found out about a candidate.
template <class T>
struct Tried {
  std::optional<T> value;
  bool wrong_input = false;  ///< there is no value because the candidate cannot run; else the process failed
  std::string message;       ///< why there is no value

  /// Whether there is no value; then its candidate gets the state and the message that say why.
  template <class Candidate>
  bool failed(Candidate& candidate) {
    if (value) return false;
    candidate.state = wrong_input ? TrialState::cannot_run : TrialState::failed;
    candidate.message = std::move(message);
    return true;
  }
};

/// The run of an item; called in processes. @throws InputError
using PrepareItem = std::function<PreparedRun(std::size_t item)>;

/// Plans items 0 ... count - 1 in `jobs` processes, and calls `planned` here for each of them, in any order.
/// @pre SIGPIPE is ignored.
void plan_in_workers(std::size_t count, std::size_t jobs, const PrepareItem& prepare,
                     const std::function<void(std::size_t item, Tried<Assessment> tried)>& planned);

struct SimulateOptions {
  bool with_trace = false;
  bool apart = false;  ///< each replay in a process of its own (workers.h)
};

/// Simulates items 0 ... count - 1 in `jobs` processes. @pre SIGPIPE is ignored.
std::vector<Tried<RunOutput>> simulate_in_workers(std::size_t count, std::size_t jobs,
                                                  const PrepareItem& prepare, const SimulateOptions& options);

}  // namespace convoy::search
