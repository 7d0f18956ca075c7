// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/search/rank.h"

namespace convoy::inline search {

/// A candidate that may still change the answer: at its best it has the rank `bound`.
struct Hope {
  Rank bound;
  std::size_t candidate = 0;
};

/// What is searched for the answer to one question: candidates by number. It knows how far each of them has
/// come and what would answer the question; best_first() decides which of them is planned or simulated next.
class SearchSpace {
 public:
  virtual ~SearchSpace() = default;
  /// The candidates that may still change the answer, each once; none that was simulated.
  virtual std::vector<Hope> hopes() const = 0;
  virtual bool is_planned(std::size_t candidate) const = 0;
  /// Plans candidates; afterwards each of them is planned, or is no hope.
  virtual void plan(const std::vector<std::size_t>& candidates) = 0;
  /// Records what the simulation of one candidate came to; after that it is no hope.
  using Record = std::function<void()>;
  /// Simulates planned candidates side by side. Nothing is known of them before their records are called.
  virtual std::vector<Record> simulate(const std::vector<std::size_t>& candidates) = 0;
};

struct BestFirstOptions {
  std::size_t at_once = 1;               ///< simulations side by side
  std::optional<std::int64_t> budget{};  ///< simulations at most
  std::function<void()> progress = [] {};
  std::size_t first_group = 16;  ///< candidates that are planned in the first group
  bool grows_anew = false;       ///< groups begin with first_group again after each simulation, which rules out many
};

/// Plans and simulates candidates of the space until no other can change the answer, by branch and bound: the
/// one with the least bound comes next (of equals one with a plan, then the first), to be planned if it is
/// not, else to be simulated. So no candidate is planned while a plan that was known when its group began is
/// better than its bound or equal to it, and none is simulated while a candidate without a plan may be better. Candidates
/// are planned in groups that grow, so that a space of 10,000 takes few rounds and one whose best comes early
/// takes few plans. What was simulated ahead counts only if the search would have come to it next: which
/// candidates are planned and simulated, and in which order, does not depend on `at_once`.
/// @returns the number of simulations that count
std::int64_t best_first(SearchSpace& space, const BestFirstOptions& options);

}  // namespace convoy::search
