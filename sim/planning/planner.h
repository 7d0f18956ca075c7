// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/figures.h"
#include "sim/search/best_first.h"
#include "sim/search/standing.h"

namespace convoy::inline planning {

/// Puts questions to the candidates and simulates what it needs for exact answers: those that every
/// candidate's simulation would give (test: `exhaustive`). What was simulated for one question is there for
/// the next.
class Planner {
 public:
  explicit Planner(Trials& trials) : trials_(trials), estimates_(trials) {}
  /// Of the same candidates with other trials (Trials::with_bandwidth).
  Planner(Trials& trials, const Planner& like) : trials_(trials), estimates_(trials, like.estimates_) {}

  /// Simulates every candidate that may be rented at all, so that bounds save nothing.
  void simulate_all(const Scenario& scenario);
  /// Simulates candidates that are likely to answer what is asked next, by which others are ruled out at once.
  void simulate_first(const std::vector<std::size_t>& candidates);

  /// best_of those that keep the constraints; nothing where none keeps them.
  std::optional<std::size_t> least(const Scenario& scenario);

  /// The same, or, where that one has a doubt, the least without one if the difference is within its 80 % interval
  /// (is_tie).
  std::optional<std::size_t> best(const Scenario& scenario);

  /// Those among which the answer of best() is for every scenario between two, for Scenario::among: all that may be
  /// the best somewhere at their least, with or without those that have a doubt. @pre in between, time, cost, energy
  /// and carbon of every candidate only rise, or only fall; the two differ in nothing else
  std::shared_ptr<const std::vector<std::size_t>> rivals(const Scenario& from, const Scenario& to) const;

  /// Candidates that keep the constraints on links of any bandwidth at their least, in ascending order, with the value
  /// that they are not below on any.
  std::vector<std::pair<double, std::size_t>> least_on_any_links(const Scenario& scenario) const;

  /// front_of those that keep the constraints.
  std::vector<std::size_t> front(const Scenario& scenario);

  const Trials& trials() const { return trials_; }
  /// Finds out what is shown of candidates that were simulated (Trials::simulate_in_full).
  void simulate_in_full(const std::vector<std::size_t>& candidates) const;
  const Estimates& estimates() const { return estimates_; }
  bool simulated(std::size_t candidate) const;
  Figures figures(std::size_t candidate, const Scenario& scenario) const {
    return estimates_.figures(candidate, scenario);
  }
  /// The objective of a candidate that was simulated and keeps the constraints; nothing where it was not, or does not.
  std::optional<double> value_where_kept(std::size_t candidate, const Scenario& scenario) const;
  /// Of a simulated candidate the figures that its plan bounded it by.
  Figures bound(std::size_t candidate, const Scenario& scenario) const;
  /// How many candidates were not simulated, by reason: those of Estimates, "deadline", "budget", and "bound":
  /// cannot be chosen, on the front or a runner-up even at their best.
  std::map<std::string, std::int64_t> pruned(const Scenario& scenario) const;
  std::int64_t simulated_count() const;
  std::int64_t planned_count() const;  ///< candidates of which a plan was made

 private:
  /// Whether the scenario chooses from the candidate.
  bool is_open(std::size_t candidate, const Scenario& scenario) const;
  /// Candidates that are, without those whose least_values() are known to be above `most`.
  std::vector<std::size_t> open(const Scenario& scenario, double most) const;
  std::vector<std::size_t> open_and_simulated(const Scenario& scenario) const;
  /// By candidate: a lower bound of its value of the plan's own objective, as it is known when this is first asked.
  /// Bounds only grow, so it stays one.
  const std::vector<double>& least_values() const;
  /// A candidate that ties with `value` in the scenario has no larger least_values() than this. Apart from prices, a
  /// scenario changes nothing that makes a value smaller than it is in the plan's own.
  double own_value(const Scenario& scenario, double value) const;
  Standing standing(std::size_t candidate, const Scenario& scenario, const Figures& figures) const;
  /// Figures that no simulation of the candidate goes below, rounding aside.
  Figures floor(std::size_t candidate, const Scenario& scenario) const;
  static bool keeps(const Figures& figures, const Scenario& scenario);
  std::size_t setup_of(const Standing& standing) const {
    return trials_.space().candidates[standing.candidate].setup;
  }
  /// What is asked of candidates.
  struct Question {
    /// Of the standings that are known and those that are bounds, the setups that may change the answer.
    std::function<std::vector<Hope>(const std::vector<Standing>& known, const std::vector<Standing>& bounds)>
        hopes;
    /// Whether a bound will never be a hope again.
    std::function<bool(const Standing& bound)> is_out;
    /// The value with which a candidate ties, at the worst, that may change the answer; infinite: with any.
    std::function<double()> most;
  };
  std::vector<Standing> search(const Scenario& scenario, const Question& question);

  Trials& trials_;
  Estimates estimates_;
  mutable std::vector<double> least_values_;  ///< empty: nobody has asked yet
};

}  // namespace convoy::planning
