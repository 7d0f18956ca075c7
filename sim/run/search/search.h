// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/run/search/search_spec.h"
#include "sim/run/simulate.h"

namespace convoy::inline search {

/// `strategy: {kind: auto}` at one point of an experiment.
///
/// Candidates are bounded from a cost table that all share (prior_bound.h) and planned in the order of those
/// bounds. A plan gives its memory exactly and a better lower bound of its objective. What does not fit is
/// out, unless nothing fits. The others are simulated in the order of their plans' bounds, until none that is
/// left, planned or not, can beat the best so far: the outcome is that of simulating all of them, equals in
/// the order given. How many are planned and simulated does not depend on the number of processes: what these
/// simulate ahead in vain is thrown away.
class Search {
 public:
  /// Reads the search and makes sure that it has a candidate that can run; the rest of them are planned when
  /// it runs.
  /// @param preparer must outlive this object
  /// @throws InputError
  Search(Preparer& preparer, std::size_t index);

  /// How many candidates are decided (simulated, ruled out or refused), and how many there are.
  using Told = std::function<void(std::size_t decided, std::size_t all)>;

  /// The output of the best candidate, with the search's summary. @pre SIGPIPE is ignored.
  /// @param jobs processes at a time
  /// @param told called now and then
  /// @throws std::runtime_error: no candidate could be simulated
  RunOutput run(
      std::size_t jobs, bool with_trace, const Told& told = [](std::size_t, std::size_t) {}) const;

 private:
  Preparer& preparer_;
  std::size_t index_;
  SearchSpec spec_;
};

}  // namespace convoy::search
