// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/planner.h"
#include "sim/results/result.h"

namespace convoy::inline planning {

/// A candidate with its figures, as results show it.
struct CandidateResultOfPlan {
  Order order;
  std::int64_t devices = 0;
  Market market = Market::on_demand;
  std::string region;
  bool own = false;            ///< all its machines are written out in the plan: none is rented
  bool interruptible = false;  ///< on the spot market, or failures of hosts count
  OnInterruption reaction = OnInterruption::wait;
  std::vector<Price> prices;        ///< of each kind of server; empty where not known
  std::vector<std::string> doubts;  ///< why the choice should not rest on them
  Precision precision = Precision::fp32;
  std::int64_t batch_per_device = 0, global_batch = 0;
  YamlNode strategy;
  std::string label, bottleneck;
  Figures figures;
  double usd_per_h = 0;  ///< of all servers; infinite where not known
  double idle_usd_per_h = 0;  ///< Estimates::idle_usd_per_h
  double step_time_s = 0, peak_memory_bytes = 0;
  /// Where four of five lie by what is the candidate's own (Estimates::own_factors), for comparing it with others.
  std::pair<double, double> time_interval;
  /// Where four of five whole runs lie: with what they take beside their steps, interruptions and, of the cost, the
  /// age of prices.
  std::pair<double, double> run_time_interval, run_cost_interval;
  std::pair<double, double> interruptions_interval;  ///< where machines may go
  bool doubtful = false;                             ///< doubts has some beside those of the whole plan
  /// On the front or a runner-up: how it stands against the choice, which the rest says.
  bool compared = false;
  std::string outcome;                 ///< "best" | "beaten"
  std::optional<double> value, bound;  ///< of the objective (value_of); what its plan bounded it by
  bool tie = false;                    ///< the difference to the choice is within its 80 % interval
  std::string reason;
};

/// What would change the choice.
struct Change {
  std::string text;    ///< "the price of aws-p3.16xlarge rises by 27 % or more, to 31.1 USD/h"
  std::string kind;    ///< "price" | "deadline" | "budget" | "global_batch" | "evaluation" | "input" |
                       ///< "bandwidth"
  std::string server;  ///< whose price, or ""
  double value = 0;    ///< at which the choice changes: USD/h, s, USD, images, factor
  std::optional<CandidateResultOfPlan> choice;  ///< then; nothing: no candidate is left
};

/// The constraint that is nearest to letting a candidate through, where none passes.
struct NearestConstraint {
  std::string name, text;
  std::optional<CandidateResultOfPlan> candidate;  ///< that only this constraint keeps out
};

/// What the choice rests on that nobody said or measured here.
struct Assumption {
  std::string what, value;  ///< "input", "synthetic"
  Grade grade = Grade::unstated;
  std::string would_change;  ///< what another value would do
};

/// What a scenario of the plan comes to (`plan.scenarios`).
struct VariantChoice {
  std::string name;
  std::vector<std::string> set;
  std::optional<CandidateResultOfPlan> choice;
};

/// Servers that were asked for and are no candidates.
struct LeftOut {
  std::vector<std::string> servers;
  std::string why;  ///< "no price on demand: ..."
};

struct PlanAnswer {
  std::string name, goal;
  PlanObjective objective = PlanObjective::cost;
  PlanConstraints constraints;
  std::optional<CandidateResultOfPlan> choice;
  std::vector<CandidateResultOfPlan> front, runners_up;
  std::int64_t candidates = 0, planned = 0, simulated = 0;
  std::map<std::string, std::int64_t> pruned;
  std::vector<LeftOut> left_out;
  std::string newest_price;  ///< the last day of the price table, by which one sees how old its prices are
  std::vector<Change> sensitivity;
  std::vector<Assumption> assumes;        ///< of the choice
  std::vector<std::string> not_included;  ///< in its time and cost
  std::vector<VariantChoice> scenarios;
  std::optional<NearestConstraint> nearest;
  Manifest manifest;
};

struct PlanOptions {
  std::size_t jobs = 1;
  bool exhaustive = false;
  Trials::Progress progress = [](const std::string&, std::size_t, std::size_t) {};
};

/// The plan's answer. It does not depend on the number of jobs, and exhaustive or not differ in the counts
/// only.
/// @throws InputError
PlanAnswer make_plan(const PlanSpec& spec, const PlanOptions& options);

/// What `convoy check` says of a plan, without simulating: "3456 candidates", and who is left out. @throws
/// InputError
std::string check_plan(const PlanSpec& spec, std::size_t jobs);

/// "left out: dgx1-v100: no price on demand; ..."
std::string left_out_text(const LeftOut& out);

/// The plan's own question.
Scenario scenario_of(const PlanSpec& spec);

/// @pre the candidate was simulated
CandidateResultOfPlan result_of(const Planner& planner, std::size_t candidate, const Scenario& scenario);

/// What is usual where a plan takes images to be there: PyTorch's loader, with files in the host's memory.
InputSpec input_from_files();

/// What the answer's choice rests on, and what its figures leave out. @pre sensitivity is there
std::vector<Assumption> assumptions_of(const Planner& planner, const Scenario& scenario, std::size_t choice,
                                       const PlanAnswer& answer);
std::vector<std::string> not_included_in(const PlanSpec& spec, const CandidateResultOfPlan& choice);

/// Prices, deadline, budget, batch, evaluation, input and bandwidth at which another choice than `choice` is the best.
std::vector<Change> sensitivity_of(Planner& planner, const Scenario& scenario, std::size_t choice,
                                   const std::vector<std::size_t>& runners_up);

}  // namespace convoy::planning
