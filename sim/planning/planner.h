// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/planning/figures.h"

namespace convoy::inline planning {

/// Puts questions to the candidates and simulates what it needs for exact answers: those that every
/// candidate's simulation would give (test: `exhaustive`). What was simulated for one question is there for
/// the next.
class Planner {
 public:
  explicit Planner(Trials& trials) : trials_(trials), ledger_(trials) {}

  /// Simulates every candidate that may be rented at all, so that bounds save nothing.
  void simulate_all(const Scenario& scenario);

  /// The candidate that keeps the constraints and has the least value of the scenario's objective; of equals
  /// the quicker one, then the earlier one. Nothing where none keeps them.
  std::optional<std::size_t> best(const Scenario& scenario);

  /// Those that keep the constraints and that none of them betters: no other is as quick and as cheap, and
  /// one of the two more so. Quickest first; of equals the earlier one.
  std::vector<std::size_t> front(const Scenario& scenario);

  const Trials& trials() const { return trials_; }
  const Ledger& ledger() const { return ledger_; }
  bool simulated(std::size_t candidate) const;
  Figures figures(std::size_t candidate, const Scenario& scenario) const {
    return ledger_.figures(candidate, scenario);
  }
  /// How many candidates were not simulated, by reason: those of Ledger, "deadline", "budget", and "bound":
  /// cannot be chosen, on the front or a runner-up even at their best.
  std::map<std::string, std::int64_t> pruned(const Scenario& scenario) const;
  std::int64_t simulated_count() const;
  std::int64_t planned_count() const;  ///< candidates of which a plan was made

 private:
  std::vector<std::size_t> open(const Scenario& scenario) const;
  static bool keeps(const Figures& figures, const Scenario& scenario);
  std::vector<std::size_t> first_setups(const std::vector<std::size_t>& candidates, std::size_t most) const;

  Trials& trials_;
  Ledger ledger_;
};

}  // namespace convoy::planning
