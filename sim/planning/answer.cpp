// SPDX-License-Identifier: MIT
#include "sim/planning/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "sim/base/names.h"
#include "sim/base/quantity.h"
#include "sim/results/text.h"

namespace convoy::inline planning {
namespace {

constexpr std::size_t most_runners_up = 5;

std::pair<double, double> around(double value, double low, double high) {
  return {value * low, value * high};
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

/// @param least may be 0: own machines, whose hours cost nothing
std::string more_text(double more, double least) {
  if (least <= 0) return more <= 0 ? "as much" : "more";
  const double ratio = more / least;
  if (std::abs(ratio - 1) < 5e-4) return "as much";
  return ratio > 1 ? fmt::format("{:.3g} % more", 100 * (ratio - 1))
                   : fmt::format("{:.3g} % less", 100 * (1 - ratio));
}

std::string why_not(PlanObjective objective, const CandidateResultOfPlan& loser,
                    const CandidateResultOfPlan& choice) {
  const std::string more = more_text(value_of(objective, loser.figures), value_of(objective, choice.figures));
  const std::string time = format_time(loser.figures.time_s),
                    chosen_time = format_time(choice.figures.time_s);
  std::string text;
  switch (objective) {
    case PlanObjective::cost:
      text = fmt::format("costs {}: {:.2f} USD/h for {} instead of {:.2f} USD/h for {}", more,
                         loser.usd_per_h, time, choice.usd_per_h, chosen_time);
      break;
    case PlanObjective::time:
      text = fmt::format("takes {}: {} instead of {}", more, time, chosen_time);
      break;
    case PlanObjective::energy:
      text = fmt::format("takes {} energy", more);
      break;
    case PlanObjective::carbon:
      text = fmt::format("emits {}", more);
      break;
    case PlanObjective::front:
      text = fmt::format("time x cost is {}", more);
      break;
  }
  if (!loser.bottleneck.empty()) text += "; " + loser.bottleneck;
  if (loser.tie) text += "; a tie: the difference is within its 80 % interval";
  return text;
}

/// "12 x as quick, costs 3 times as much": what a candidate of the front offers instead of the choice.
std::string instead(const CandidateResultOfPlan& other, const CandidateResultOfPlan& choice) {
  const auto compared = [](double others, double own, const char* less, const char* more) {
    if (others <= 0 || own <= 0)  // a price of 0
      return std::string(others == own ? "" : others > own ? more : less);
    const double ratio = others / own;
    if (std::abs(ratio - 1) < 5e-4) return std::string{};
    if (ratio >= 2 || ratio <= 0.5)
      return fmt::format("{:.3g} times {}", ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? more : less);
    return fmt::format("{:.3g} % {}", 100 * std::abs(ratio - 1), ratio > 1 ? more : less);
  };
  const std::string time = compared(other.figures.time_s, choice.figures.time_s, "quicker", "slower"),
                    cost = compared(other.figures.cost_usd, choice.figures.cost_usd, "cheaper", "dearer");
  return fmt::format("{}{}{}", time, time.empty() || cost.empty() ? "" : ", ", cost);
}

/// Whether what the loser needs more than the choice lies within the 80 % interval of that difference.
/// Machines of other kinds err for themselves; cost, energy and carbon err as the time does.
bool is_tie(PlanObjective objective, const CandidateResultOfPlan& loser,
            const CandidateResultOfPlan& choice) {
  const double more = value_of(objective, loser.figures), least = value_of(objective, choice.figures);
  const double less_by = 1 - loser.time_interval.first / loser.figures.time_s;
  const double more_by = choice.time_interval.second / choice.figures.time_s - 1;
  return more - least <= std::hypot(more * less_by, least * more_by);
}

/// Without one of the constraints: how far the best candidate then is from keeping it, as a ratio above 1.
struct Relaxed {
  std::string name;
  double ratio = 0;
  std::size_t candidate = 0;
  std::string text;
};

template <class Limit>
std::optional<Relaxed> without(Planner& planner, const Scenario& scenario, const char* name,
                               std::optional<Limit> PlanConstraints::*limit, PlanObjective least, auto amount,
                               auto text) {
  if (!(scenario.constraints.*limit)) return std::nullopt;
  Scenario relaxed = scenario;
  relaxed.constraints.*limit = std::nullopt;
  relaxed.objective = least;
  relaxed.priced = scenario.priced || scenario.objective == PlanObjective::cost ||
                   scenario.objective == PlanObjective::front;
  const std::optional<std::size_t> found = planner.best(relaxed);
  if (!found) return std::nullopt;
  const double needs = amount(*found), allowed = static_cast<double>(*(scenario.constraints.*limit));
  return Relaxed{name, needs / allowed, *found, text(needs, allowed)};
}

std::optional<NearestConstraint> nearest_constraint(Planner& planner, const Scenario& scenario) {
  const auto figures = [&](std::size_t c) { return planner.figures(c, scenario); };
  const auto setup = [&](std::size_t c) {
    return planner.trials().setup(planner.trials().space().candidates[c].setup);
  };
  std::vector<Relaxed> found;
  const auto take = [&](std::optional<Relaxed> relaxed) {
    if (relaxed) found.push_back(std::move(*relaxed));
  };
  take(without(
      planner, scenario, "deadline", &PlanConstraints::deadline_s, PlanObjective::time,
      [&](std::size_t c) { return figures(c).time_s; },
      [](double needs, double allowed) {
        return fmt::format("the quickest that keeps the others takes {}, the deadline is {}",
                           format_time(needs), format_time(allowed));
      }));
  take(without(
      planner, scenario, "budget", &PlanConstraints::budget_usd, PlanObjective::cost,
      [&](std::size_t c) { return figures(c).cost_usd; },
      [](double needs, double allowed) {
        return fmt::format("the cheapest that keeps the others costs {:.2f} USD, the budget is {:.2f} USD",
                           needs, allowed);
      }));
  take(without(
      planner, scenario, "max_devices", &PlanConstraints::max_devices, scenario.objective,
      [&](std::size_t c) { return static_cast<double>(setup(c).devices); },
      [](double needs, double allowed) {
        return fmt::format("one that keeps the others has {:.0f} devices, max_devices is {:.0f}", needs,
                           allowed);
      }));
  take(without(
      planner, scenario, "max_global_batch", &PlanConstraints::max_global_batch, scenario.objective,
      [&](std::size_t c) { return static_cast<double>(setup(c).global_batch); },
      [](double needs, double allowed) {
        return fmt::format(
            "one that keeps the others has a global batch of {:.0f}, max_global_batch is {:.0f}", needs,
            allowed);
      }));
  if (found.empty()) return std::nullopt;
  const auto nearest = std::min_element(found.begin(), found.end(),
                                        [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  return NearestConstraint{nearest->name, nearest->text, result_of(planner, nearest->candidate, scenario)};
}

/// Where no single constraint is to blame.
NearestConstraint several_constraints(Planner& planner, const Scenario& scenario) {
  Scenario free = scenario;
  free.constraints.deadline_s.reset();
  free.constraints.budget_usd.reset();
  if (const std::optional<std::size_t> found = planner.best(free))
    return {"deadline and budget", "no candidate keeps either of the two with the other",
            result_of(planner, *found, free)};
  const std::map<std::string, std::int64_t> pruned = planner.pruned(scenario);
  std::string text;
  for (const auto& [reason, count] : pruned)
    text +=
        fmt::format("{}{} {}", text.empty() ? "of the candidates " : ", ", count, meaning_of(reason, count));
  for (std::size_t s = 0; s < planner.trials().space().setups.size(); ++s)
    if (const Trial& trial = planner.trials().trial(s); !trial.message.empty()) {
      text += fmt::format("; the first: {}", trial.message);
      break;
    }
  const auto most = std::max_element(pruned.begin(), pruned.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return {most == pruned.end() ? "candidates" : most->first, text, std::nullopt};
}

/// @throws InputError: no batch of any candidate lies inside the goal's table
void check_range(const Planner& planner) {
  const Goal& goal = planner.trials().spec().goal;
  const std::vector<Setup>& setups = planner.trials().space().setups;
  const auto range = goal.range();
  if (!range || setups.empty()) return;
  for (std::size_t s = 0; s < setups.size(); ++s)
    if (planner.estimates().epochs(s)) return;
  const auto [least, most] =
      std::minmax_element(setups.begin(), setups.end(),
                          [](const Setup& a, const Setup& b) { return a.global_batch < b.global_batch; });
  throw InputError(
      goal.pos(),
      fmt::format("goal: the table has epochs for global batches of {:.0f} to {:.0f}; those of all "
                  "candidates, {} to {}, lie outside (`extrapolate: true` goes beyond it)",
                  range->first, range->second, least->global_batch, most->global_batch));
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

const char* meaning_of(const std::string& reason, std::int64_t count) {
  struct Meaning {
    const char *reason, *of_one, *of_several;
  };
  static constexpr std::array meanings{
      Meaning{"bound", "cannot be better even at its bound", "cannot be better even at their bounds"},
      Meaning{"memory", "does not fit in memory", "do not fit in memory"},
      Meaning{"goal", "has a global batch outside the goal's table",
              "have a global batch outside the goal's table"},
      Meaning{"price", "has no price", "have no price"},
      Meaning{"carbon", "is in a region whose electricity is not known",
              "are in a region whose electricity is not known"},
      Meaning{"deadline", "misses the deadline even at its bound", "miss the deadline even at their bounds"},
      Meaning{"budget", "exceeds the budget even at its bound", "exceed the budget even at their bounds"},
      Meaning{"max_devices", "has too many devices", "have too many devices"},
      Meaning{"max_global_batch", "has too large a global batch", "have too large a global batch"},
      Meaning{"cannot_run", "cannot run", "cannot run"}};
  for (const Meaning& meaning : meanings)
    if (reason == meaning.reason) return count == 1 ? meaning.of_one : meaning.of_several;
  return "failed";
}

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
  const Trial& trial = planner.trials().trial(candidate.setup);
  CandidateResultOfPlan result;
  const PlanSpec& spec = planner.trials().spec();
  result.doubts = spec.doubts;
  for (std::string& doubt : planner.estimates().doubts(c)) result.doubts.push_back(std::move(doubt));
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
  result.strategy = setup.strategy;
  result.label = trial.label;
  result.bottleneck = trial.bottleneck;
  result.figures = planner.figures(c, scenario);
  result.usd_per_h = planner.estimates().usd_per_h(c, scenario);
  result.idle_usd_per_h = planner.estimates().idle_usd_per_h(c, scenario);
  result.step_time_s = trial.step_s;
  result.peak_memory_bytes = trial.peak_memory_bytes;
  // Of the step and of the epochs, which err independently.
  const EpochsNeeded& epochs = *planner.estimates().epochs(candidate.setup);
  const double low = 1 - std::hypot(1 - trial.step_low, 1 - epochs.least / epochs.epochs);
  const double high = 1 + std::hypot(trial.step_high - 1, epochs.most / epochs.epochs - 1);
  result.time_interval = around(result.figures.time_s, std::max(0.0, low), high);
  result.cost_interval = around(result.figures.cost_usd, std::max(0.0, low), high);
  return result;
}

namespace {

/// A plan's candidates, which have what its question needs; none is simulated yet.
struct Listed {
  std::unique_ptr<Trials> trials;
  std::vector<LeftOut> left_out;
};

/// @throws InputError
Listed listed(const PlanSpec& spec, std::size_t jobs, const Trials::Progress& progress) {
  Listed all{std::make_unique<Trials>(spec, jobs, progress), {}};
  check_range(Planner(*all.trials));
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
  Trials& trials = *listed.trials;
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  PlanAnswer answer;
  answer.left_out = std::move(listed.left_out);
  if (options.exhaustive) planner.simulate_all(scenario);
  answer.name = spec.name;
  answer.goal = spec.goal.text();
  answer.objective = spec.objective;
  answer.constraints = spec.constraints;
  answer.candidates = static_cast<std::int64_t>(trials.space().candidates.size());
  const std::optional<std::size_t> choice = planner.best(scenario);
  if (choice) {
    const std::vector<std::size_t> front = planner.front(scenario);
    const std::vector<std::size_t> others = runners_up_of(planner, scenario, *choice);
    answer.choice = result_of(planner, *choice, scenario);
    for (const std::size_t c : front) {
      answer.front.push_back(result_of(planner, c, scenario));
      answer.front.back().reason = c == *choice ? "the choice" : instead(answer.front.back(), *answer.choice);
    }
    for (const std::size_t c : others) {
      CandidateResultOfPlan runner = result_of(planner, c, scenario);
      runner.tie = is_tie(spec.objective, runner, *answer.choice);
      runner.reason = why_not(spec.objective, runner, *answer.choice);
      answer.runners_up.push_back(std::move(runner));
    }
    answer.sensitivity = sensitivity_of(planner, scenario, *choice, others);
    answer.assumes = assumptions_of(planner, scenario, *choice, answer);
    answer.not_included = not_included_in(spec, *answer.choice);
  } else {
    answer.nearest = nearest_constraint(planner, scenario);
    if (!answer.nearest) answer.nearest = several_constraints(planner, scenario);
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
