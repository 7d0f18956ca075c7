// SPDX-License-Identifier: MIT
#include "sim/planning/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/base/names.h"
#include "sim/planning/drawn_interruptions.h"
#include "sim/planning/nearest_constraint.h"
#include "sim/planning/whole_runs.h"
#include "sim/planning/why_not.h"
#include "topologies/price_age.h"

namespace convoy::inline planning {
namespace {

constexpr std::size_t most_runners_up = 5;

std::pair<double, double> around(double value, const std::pair<double, double>& factors) {
  return {value * factors.first, value * factors.second};
}

/// Of errors that are independent and add up as logarithms: where the product of factors lies.
std::pair<double, double> together(const std::pair<double, double>& a, const std::pair<double, double>& b) {
  const auto log_of = [](double factor) { return std::log(std::max(factor, 1e-9)); };  // of no time too
  return {std::exp(-std::hypot(log_of(a.first), log_of(b.first))),
          std::exp(std::hypot(log_of(a.second), log_of(b.second)))};
}

/// How far the prices of a candidate may have moved since they were seen, as a factor. Those of one provider move
/// together.
double price_factor(const PlanSpec& spec, const CandidateResultOfPlan& result) {
  double reach = 0;
  for (std::size_t kind = 0; kind < result.prices.size(); ++kind) {
    const Price& price = result.prices[kind];
    if (price.region.empty() || result.usd_per_h <= 0) continue;
    const double share =
        price.usd_per_hour * static_cast<double>(result.order[kind].second) / result.usd_per_h;
    reach += share * price_reach(price.market, spec.price_age_years(price));
  }
  return std::exp(reach);
}

void add_intervals(const Planner& planner, std::size_t c, const Scenario& scenario,
                   CandidateResultOfPlan& result) {
  const std::pair<double, double> own = planner.estimates().own_factors(c, scenario);
  result.time_interval = around(result.figures.time_s, own);
  const auto [least_rate, most_rate] = planner.estimates().rate_factors(c);
  const DrawnInterruptions drawn = draw_interruptions(
      {result.figures.interruptions, result.figures.time_s, result.figures.lost_s, least_rate, most_rate});
  result.interruptions_interval = drawn.events;
  static const WholeRunSpread whole = whole_run_spread(whole_runs());
  const std::pair<double, double> run = together(own, drawn.time_factors);
  result.run_time_interval = around(result.figures.time_s, whole.around(run));
  const double moved = price_factor(planner.trials().spec(), result);
  result.run_cost_interval = around(result.figures.cost_usd, whole.around(together(run, {1 / moved, moved})));
}

/// The best of the kinds of servers that the choice does not use, each kind once, best first.
std::vector<std::size_t> runners_up_of(Planner& planner, const Scenario& scenario, std::size_t choice) {
  const auto kinds = [&](std::size_t c) {
    return kinds_of(planner.trials().setup(planner.trials().space().candidates[c].setup).order);
  };
  Scenario others = scenario;
  others.without.insert(kinds(choice));
  std::vector<std::size_t> found;
  while (found.size() < most_runners_up) {
    const std::optional<std::size_t> next = planner.best(others);
    if (!next) break;
    found.push_back(*next);
    others.without.insert(kinds(*next));
  }
  return found;
}

/// @throws InputError: no batch of any candidate lies inside the goal's table
void check_range(const Planner& planner) {
  const Goal& goal = planner.trials().spec().goal;
  const std::vector<Setup>& setups = planner.trials().space().setups;
  const auto range = goal.range();
  if (!range || setups.empty()) return;
  for (std::size_t s = 0; s < setups.size(); ++s)
    if (planner.estimates().facts().epochs(s)) return;
  const auto [least, most] =
      std::minmax_element(setups.begin(), setups.end(),
                          [](const Setup& a, const Setup& b) { return a.global_batch < b.global_batch; });
  throw InputError(
      goal.pos(),
      fmt::format("goal: the table has epochs for global batches {}; those of all candidates, {} to {}, lie "
                  "outside",
                  range->first > 0 ? fmt::format("of {:.0f} to {:.0f}", range->first, range->second)
                                   : fmt::format("up to {:.0f}", range->second),
                  least->global_batch, most->global_batch));
}

/// Servers that were asked for by their provider's name, and are of another that the plan takes.
LeftOut of_other_providers(const Trials& trials) {
  const PlanSpec& spec = trials.spec();
  LeftOut out{{}, fmt::format("plan.constraints.providers has {} only", list_of(spec.constraints.providers))};
  if (spec.all_servers) return out;
  for (const std::string& name : spec.servers)
    if (!trials.servers().contains(name)) out.servers.push_back(name);
  return out;
}

/// Servers without a price, where the question is of those that have one.
/// @throws InputError: none that was asked for has one
LeftOut without_price(const Trials& trials, const Scenario& scenario) {
  const PlanSpec& spec = trials.spec();
  LeftOut out;
  if (!needs_price(scenario)) return out;
  std::vector<std::string> markets;
  for (const Market market : spec.markets)
    markets.push_back(market == Market::spot ? "on the spot market" : "on demand");
  out.why = fmt::format(
      "no price {}{}; a server of your own says it with `price`, a price table with --prices",
      fmt::join(markets, " or "), spec.regions.empty() ? "" : fmt::format(" in {}", list_of(spec.regions)));
  for (const auto& [name, server] : trials.servers())
    if (!has_price(spec, server)) out.servers.push_back(name);
  if (out.servers.size() == trials.servers().size())
    throw InputError(spec.servers_pos, fmt::format("plan.servers: {}: {}; objectives time, energy and carbon "
                                                   "without a budget need none",
                                                   list_of(out.servers), out.why));
  return out;
}

std::vector<LeftOut> left_out(const Trials& trials, const Scenario& scenario) {
  std::vector<LeftOut> all{of_other_providers(trials), without_price(trials, scenario)};
  std::erase_if(all, [](const LeftOut& each) { return each.servers.empty(); });
  return all;
}

}  // namespace

std::string left_out_text(const LeftOut& out) {
  return fmt::format("left out: {}: {}", list_of(out.servers), out.why);
}

Scenario scenario_of(const PlanSpec& spec) {
  Scenario scenario;
  scenario.objective = scenario.value_of = spec.objective;
  scenario.constraints = spec.constraints;
  return scenario;
}

CandidateResultOfPlan result_of(const Planner& planner, std::size_t c, const Scenario& scenario) {
  const Candidate& candidate = planner.trials().space().candidates[c];
  const Setup& setup = planner.trials().setup(candidate.setup);
  planner.simulate_in_full({c});
  const Trial& trial = planner.trials().trial(candidate.setup);
  const TrialDetails& details = planner.trials().details(candidate.setup);
  CandidateResultOfPlan result;
  const PlanSpec& spec = planner.trials().spec();
  result.doubts = spec.doubts;
  for (std::string& doubt : planner.estimates().facts().doubts(c)) result.doubts.push_back(std::move(doubt));
  result.order = setup.order;
  result.devices = setup.devices;
  result.market = candidate.market;
  result.region = candidate.region;
  result.own = std::all_of(setup.order.begin(), setup.order.end(),
                           [&](const auto& kind) { return spec.own_servers.contains(kind.first); });
  result.interruptible = candidate.market == Market::spot || spec.failures;
  result.reaction = candidate.reaction;
  result.prices = candidate.prices;
  result.precision = setup.precision;
  result.batch_per_device = setup.batch_per_device;
  result.global_batch = setup.global_batch;
  result.strategy = *setup.strategy;
  result.label = details.label;
  result.bottleneck = details.bottleneck;
  result.figures = planner.figures(c, scenario);
  result.usd_per_h = planner.estimates().usd_per_h(c, scenario);
  result.idle_usd_per_h = planner.estimates().idle_usd_per_h(c, scenario);
  result.step_time_s = trial.step_s;
  result.peak_memory_bytes = trial.peak_memory_bytes;
  result.doubtful = planner.estimates().facts().doubtful(c);
  add_intervals(planner, c, scenario, result);
  return result;
}

namespace {

/// A plan's candidates, which have what its question needs; none is simulated yet.
struct Listed {
  std::unique_ptr<Trials> trials;
  std::unique_ptr<Planner> planner;  ///< of these trials
  std::vector<LeftOut> left_out;
};

/// @throws InputError
Listed listed(const PlanSpec& spec, std::size_t jobs, const Trials::Progress& progress) {
  Listed all{std::make_unique<Trials>(spec, jobs, progress), nullptr, {}};
  all.planner = std::make_unique<Planner>(*all.trials);
  check_range(*all.planner);
  all.left_out = left_out(*all.trials, scenario_of(spec));
  return all;
}

/// @throws InputError that names the scenario
Listed listed(const PlanVariant& variant, std::size_t jobs, const Trials::Progress& progress) {
  try {
    return listed(*variant.spec, jobs, progress);
  } catch (const InputError& error) {
    throw InputError(variant.pos, fmt::format("plan.scenarios '{}': {}", variant.name, error.what()));
  }
}

PlanAnswer answer_of(const PlanSpec& spec, Listed listed, const PlanOptions& options) {
  const Trials& trials = *listed.trials;
  Planner& planner = *listed.planner;
  const Scenario scenario = scenario_of(spec);
  PlanAnswer answer;
  answer.left_out = std::move(listed.left_out);
  if (options.exhaustive) planner.simulate_all(scenario);
  answer.name = spec.name;
  answer.goal = spec.goal.text();
  answer.objective = spec.objective;
  answer.constraints = spec.constraints;
  answer.newest_price = newest_day(spec.prices());
  answer.candidates = static_cast<std::int64_t>(trials.space().candidates.size());
  const std::optional<std::size_t> choice = planner.best(scenario);
  if (choice) {
    const std::vector<std::size_t> front = planner.front(scenario);
    const std::vector<std::size_t> others = runners_up_of(planner, scenario, *choice);
    std::vector<std::size_t> shown = front;
    shown.insert(shown.end(), others.begin(), others.end());
    planner.simulate_in_full(shown);  // side by side
    answer.choice = result_of(planner, *choice, scenario);
    for (const std::size_t c : front) answer.front.push_back(on_front(planner, c, scenario, *choice));
    for (const std::size_t c : others)
      answer.runners_up.push_back(runner_up(planner, c, scenario, *answer.choice));
    answer.sensitivity = sensitivity_of(planner, scenario, *choice, others);
    answer.assumes = assumptions_of(planner, scenario, *choice, answer);
    answer.not_included = not_included_in(spec, *answer.choice);
  } else {
    answer.nearest = nearest_constraint(planner, scenario);
  }
  answer.pruned = planner.pruned(scenario);
  answer.planned = planner.planned_count();
  answer.simulated = planner.simulated_count();
  return answer;
}

}  // namespace

PlanAnswer make_plan(const PlanSpec& spec, const PlanOptions& options) {
  Listed own = listed(spec, options.jobs, options.progress);
  std::vector<Listed> others;
  for (const PlanVariant& variant : spec.scenarios)
    others.push_back(listed(variant, options.jobs, options.progress));
  PlanAnswer answer = answer_of(spec, std::move(own), options);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const PlanVariant& variant = spec.scenarios[i];
    answer.scenarios.push_back(
        {variant.name, variant.set, answer_of(*variant.spec, std::move(others[i]), options).choice});
  }
  return answer;
}

std::string check_plan(const PlanSpec& spec, std::size_t jobs) {
  const auto silent = [](const std::string&, std::size_t, std::size_t) {};
  const Listed own = listed(spec, jobs, silent);
  for (const PlanVariant& variant : spec.scenarios) listed(variant, jobs, silent);
  std::string text = fmt::format("{}: {} candidates of {} kinds of servers", spec.name,
                                 own.trials->space().candidates.size(), own.trials->servers().size());
  for (const LeftOut& each : own.left_out) text += "\n" + left_out_text(each);
  return text;
}

}  // namespace convoy::planning
