// SPDX-License-Identifier: MIT
#include "sim/planning/nearest_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/planning/why_not.h"

namespace convoy::inline planning {
namespace {

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
  const std::optional<std::size_t> found = planner.least(relaxed);
  if (!found) return std::nullopt;
  const double needs = amount(*found), allowed = static_cast<double>(*(scenario.constraints.*limit));
  return Relaxed{name, needs / allowed, *found, text(needs, allowed)};
}

std::optional<NearestConstraint> one_constraint(Planner& planner, const Scenario& scenario) {
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
        return fmt::format("the cheapest that keeps the others costs {}, the budget is {}", limit_text(needs),
                           limit_text(allowed));
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
  if (const std::optional<std::size_t> found = planner.least(free))
    return {"deadline and budget", "no candidate keeps either of the two with the other",
            result_of(planner, *found, free)};
  const std::map<std::string, std::int64_t> pruned = planner.pruned(scenario);
  std::string text;
  for (const auto& [reason, count] : pruned)
    text +=
        fmt::format("{}{} {}", text.empty() ? "of the candidates " : ", ", count, meaning_of(reason, count));
  for (std::size_t s = 0; s < planner.trials().space().setups.size(); ++s)
    if (const std::string message = planner.trials().message(s); !message.empty()) {
      text += fmt::format("; the first: {}", message);
      break;
    }
  const auto most = std::max_element(pruned.begin(), pruned.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return {most == pruned.end() ? "candidates" : most->first, text, std::nullopt};
}

}  // namespace

NearestConstraint nearest_constraint(Planner& planner, const Scenario& scenario) {
  if (std::optional<NearestConstraint> nearest = one_constraint(planner, scenario))
    return std::move(*nearest);
  return several_constraints(planner, scenario);
}

}  // namespace convoy::planning
