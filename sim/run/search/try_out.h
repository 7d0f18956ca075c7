// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/preparer.h"
#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"
#include "sim/run/workers.h"
#include "sim/search/trial_state.h"

namespace convoy::inline search {

/// What a process found out about a candidate.
template <class T>
struct Tried {
  std::optional<T> value;
  bool wrong_input = false;  ///< there is no value because the candidate cannot run; else the process failed
  std::string message;       ///< why there is no value

  /// Whether there is no value; then the candidate's state and message say why.
  bool failed(TrialState& state, std::string& why) {
    if (value) return false;
    state = wrong_input ? TrialState::cannot_run : TrialState::failed;
    why = std::move(message);
    return true;
  }
};

/// The run of a candidate; called in processes. @param factor with which the candidate was asked for, on whatever
/// the caller of TryOut means by it @throws InputError
using PrepareItem = std::function<PreparedRun(std::size_t candidate, Detail detail, double factor)>;

/// Plans and simulates candidates in processes, which keep from each group of candidates to the next what these
/// have in common.
class TryOut {
 public:
  /// @param prepare what it refers to has to be there as long as this object
  /// @param apart each replay in a process of its own (workers.h)
  TryOut(std::size_t jobs, PrepareItem prepare, bool apart = false);

  /// Plans candidates, and calls `planned` here for each place in the list, in any order.
  void plan(const std::vector<std::size_t>& candidates,
            const std::function<void(std::size_t place, Tried<Assessment> tried)>& planned,
            double factor = 1);

  /// Simulates candidates. @returns their outputs, in the order of the list
  std::vector<Tried<RunOutput>> simulate(const std::vector<std::size_t>& candidates, Detail detail,
                                         bool with_trace = false, double factor = 1);

 private:
  Workers workers_;
};

}  // namespace convoy::search
