// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/costs/input_pipeline.h"
#include "sim/planning/candidate_facts.h"
#include "sim/planning/trials.h"

namespace convoy::inline planning {

/// What training to the goal takes.
struct Figures {
  double epochs = 0, time_s = 0;
  double cost_usd = std::numeric_limits<double>::infinity();  ///< infinite where a price is not known
  /// The part of the cost that machines of one's own pay for their energy; nothing: none does.
  std::optional<double> electricity_usd = {};
  double energy_j = 0;
  double carbon_kg =
      std::numeric_limits<double>::infinity();  ///< infinite where the region's grid is not known
  double interruptions = 0;                     ///< expected number, where machines may go
  double lost_s = 0;                            ///< of time_s, what they are expected to take
};

/// A question put to the candidates: the plan's own, or one that differs from it.
struct Scenario {
  PlanObjective objective = PlanObjective::cost;
  PlanConstraints constraints;
  std::map<std::string, double> price_factor;  ///< by server
  bool priced = false;            ///< only candidates whose price is known, whatever the objective
  std::set<std::string> without;  ///< kinds of servers (kinds_of) that are left out
  bool undoubted = false;         ///< only candidates without a doubt
  /// Only candidates whose value of the plan's objective is below this by more than a tie.
  std::optional<double> value_below;
  PlanObjective value_of = PlanObjective::cost;
  double evaluation_s = 0;  ///< after each epoch, in addition to the goal's
  /// The pipeline whose images steps wait for, instead of the plan's; hosts that do not say their `vcpus` have no
  /// limit.
  std::optional<InputSpec> input = {};
  /// Only these candidates, in ascending order (Planner::rivals); nullptr: all.
  std::shared_ptr<const std::vector<std::size_t>> among = nullptr;
};

/// Whether a question can be asked of candidates with prices only.
bool needs_price(const Scenario& scenario);

/// Candidates' figures. A candidate whose setup was not simulated has those that no simulation goes below.
class Estimates {
 public:
  explicit Estimates(const Trials& trials);
  /// Of the same candidates with other trials (Trials::with_bandwidth), of which the rest is known.
  Estimates(const Trials& trials, const Estimates& like) : trials_(trials), facts_(like.facts_) {}

  /// Why a candidate is out whatever its step takes: "max_devices", "max_global_batch", "method", "goal", "price",
  /// "carbon", "memory", "cannot_run", "failed"; "" otherwise.
  std::string_view out(std::size_t candidate, const Scenario& scenario) const;
  Figures figures(std::size_t candidate, const Scenario& scenario) const;
  /// As above with another step.
  Figures figures(std::size_t candidate, const Scenario& scenario, double step_s, double energy_j) const;
  /// "deadline" or "budget" where the figures do not keep it, or ""
  static std::string_view broken(const Figures& figures, const Scenario& scenario);

  const CandidateFacts& facts() const { return *facts_; }
  double usd_per_h(std::size_t candidate, const Scenario& scenario) const;  ///< infinite where not known
  /// What an hour costs in which nothing computes: the price, and the electricity of machines of one's own.
  double idle_usd_per_h(std::size_t candidate, const Scenario& scenario) const;
  /// The ends of what is known of how often the candidate's machines go, as factors of the rate that counts.
  std::pair<double, double> rate_factors(std::size_t candidate) const;
  /// Where the time of a candidate that was simulated in full lies four times of five, as factors of it, by what is
  /// its own: its step and its epochs, which err independently. What whole runs have in common is no part of it. Where
  /// the scenario's input is what steps wait for, its rate is known: computing and messages err by as many seconds as
  /// without it.
  std::pair<double, double> own_factors(std::size_t candidate, const Scenario& scenario) const;

 private:
  RunEstimate estimate(std::size_t candidate, const CandidateFacts::Risk& risk, double work_s,
                       double epochs) const;
  std::size_t setup_of(std::size_t candidate) const { return trials_.space().candidates[candidate].setup; }

  const Trials& trials_;
  std::shared_ptr<const CandidateFacts> facts_;
};

/// Whether a value and a smaller one differ by less than the 80 % interval of their difference: the first may be as
/// small as `low` times itself, the other as large as `high` times itself, and they err independently.
bool within_interval(double more, double low, double least, double high);

/// The objective's value; `front`: time x cost.
double value_of(PlanObjective objective, const Figures& figures);

}  // namespace convoy::planning
