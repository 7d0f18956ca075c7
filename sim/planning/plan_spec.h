// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/precision.h"
#include "sim/costs/input_pipeline.h"
#include "sim/planning/goal.h"
#include "sim/planning/plan_constraints.h"
#include "sim/run/experiment.h"
#include "topologies/prices.h"
#include "topologies/risks.h"

namespace convoy::inline planning {

/// What a plan makes as small as possible; `front`: shows what time costs, and chooses where time x cost is
/// least.
enum class PlanObjective : std::uint8_t { cost, time, energy, carbon, front };
std::string_view to_string(PlanObjective objective);

/// What training does when machines are taken away: wait for others, or go on with those that are left.
enum class OnInterruption : std::uint8_t { wait, go_on };
std::string_view to_string(OnInterruption reaction);

inline constexpr double joules_a_kwh = 3.6e6;

struct PlanSpec;

/// The same plan with other values (`plan.scenarios`).
struct PlanVariant {
  std::string name;
  std::vector<std::string> set;  ///< "plan.constraints.deadline=12h"
  SourcePos pos;
  std::shared_ptr<const PlanSpec> spec;
};

/// `convoy plan FILE` as it was read (docs/planning.md).
struct PlanSpec {
  static constexpr std::size_t max_candidates = 1'500'000;

  std::string name;
  YamlNode model, training;  ///< training without batch and precision
  std::optional<InputSpec> input;  ///< of training, where it is given
  Goal goal;
  std::vector<std::string> doubts;  ///< why the goal may not hold for what is trained
  PlanObjective objective = PlanObjective::cost;
  SourcePos objective_pos;
  PlanConstraints constraints;
  std::vector<std::string> servers;             ///< names of the catalogue and of own_servers, sorted
  std::map<std::string, YamlNode> own_servers;  ///< written out in the plan, by name
  /// USD per J that machines of one's own use; others have it in their price.
  std::optional<double> electricity_usd_per_j;
  SourcePos servers_pos;
  bool all_servers = false;            ///< none were named: those without a price are left out
  std::vector<std::int64_t> nodes{1};  ///< of one kind of server
  bool mixtures = false;               ///< two kinds of servers side by side too
  std::vector<std::int64_t> batches;   ///< images a device and step; empty: powers of two that fit
  std::vector<Precision> precisions{Precision::fp32};
  std::vector<Market> markets{Market::on_demand};
  SourcePos markets_pos;
  RiskKind interruptions = RiskKind::advisor;  ///< which rates count for spot machines
  bool failures = false;  ///< hosts on demand fail too, at the rates of topologies/catalog/failures.csv
  double repair_s = 0;    ///< until a host that failed is replaced
  std::vector<OnInterruption> reactions{OnInterruption::wait};
  std::vector<std::string> regions;               ///< empty: where the price table has the server first
  std::shared_ptr<const PriceTable> user_prices;  ///< instead of the program's own table, where given
  /// `strategy:` mappings, lists of values multiplied out; empty: the registry's candidates for each cluster.
  std::vector<YamlNode> strategies;
  std::vector<PlanVariant> scenarios;

  const PriceTable& prices() const { return user_prices ? *user_prices : PriceTable::shipped(); }
  /// Since a price was last seen listed, up to the newest day of the table. 0 for one of no region, the user's own.
  double price_age_years(const Price& price) const;
};

/// @param prices a price table of the user's (topologies/prices.h); "": the program's own. @throws InputError
PlanSpec read_plan(const Experiment& experiment, const std::string& prices = "");

/// The keys of a plan's file, of its `plan:`, and of the constraints in it, for whoever reads about them.
std::vector<KeySection> plan_keys();

}  // namespace convoy::planning
