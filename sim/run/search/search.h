// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/run/preparer.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/simulate.h"

namespace convoy::inline search {

/// `strategy: {kind: auto}` at one point of an experiment.
///
/// Candidates get bounds from a cost table that all of them share (prior_bound.h), and are planned in the
/// order of these bounds. A plan gives the exact memory and a better lower bound of the objective. A
/// candidate that does not fit is excluded, unless none fits. The others are simulated in the order of their
/// plans' bounds, until no remaining candidate, planned or not, can beat the best so far. The outcome is that
/// of simulating all of them, with ties in the given order. The numbers of planned and simulated candidates
/// do not depend on the number of processes: what these simulate ahead in vain is discarded.
class Search {
 public:
  /// Reads the search and makes sure that one of its candidates can run; the others are planned by run().
  /// @param preparer must outlive this object
  /// @throws InputError
  Search(Preparer& preparer, std::size_t index);

  /// How many candidates are decided (simulated, ruled out or refused), and how many there are.
  using Progress = std::function<void(std::size_t decided, std::size_t all)>;

  /// The output of the best candidate, with the summary of the search.
  /// @param jobs processes at a time
  /// @param progress called from time to time
  /// @throws std::runtime_error: no candidate could be simulated
  RunOutput run(
      std::size_t jobs, bool with_trace, const Progress& progress = [](std::size_t, std::size_t) {}) const;

 private:
  Preparer& preparer_;
  std::size_t index_;
  SearchSpec spec_;
};

}  // namespace convoy::search
