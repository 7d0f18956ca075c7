// SPDX-License-Identifier: MIT
#include "sim/planning/why_not.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/base/ties.h"
#include "sim/page/text.h"
#include "sim/planning/write_plan.h"
#include "sim/search/more_text.h"

namespace convoy::inline planning {
namespace {

/// Differences below it are not shown.
constexpr double as_much = 5e-4;

/// "6.2 % more", "49.0 times as much". @param least may be 0: machines that cost nothing
std::string as_much_text(double more, double least) {
  if (least <= 0) return more <= 0 ? "as much" : "more";
  const double ratio = more / least;
  if (std::abs(ratio - 1) < as_much) return "as much";
  return more_text(more, least) + (ratio >= 2 ? " as much" : " more");
}

std::string why_not(PlanObjective objective, const CandidateResultOfPlan& loser,
                    const CandidateResultOfPlan& choice) {
  const double value = value_of(objective, loser.figures);
  if (!std::isfinite(value)) return meaning_of(objective == PlanObjective::carbon ? "carbon" : "price", 1);
  const std::string more = as_much_text(value, value_of(objective, choice.figures));
  const std::string time = format_time(loser.figures.time_s),
                    chosen_time = format_time(choice.figures.time_s);
  std::string text;
  if (value < value_of(objective, choice.figures) && loser.doubtful)
    return "is better by less than its 80 % interval, and has a doubt, which the choice has not";
  switch (objective) {
    case PlanObjective::cost:
      text = fmt::format("costs {}: {} for {} instead of {} for {}", more, hour_text(loser), time,
                         hour_text(choice), chosen_time);
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
  if (loser.tie) text += tie_text;
  return text;
}

/// "12 times quicker, 3 times dearer": what a candidate of the front offers instead of the choice.
std::string instead(const CandidateResultOfPlan& other, const CandidateResultOfPlan& choice) {
  const auto compared = [](double others, double own, const char* less, const char* more) {
    if (!std::isfinite(others) || !std::isfinite(own)) return std::string{};  // no price
    if (others <= 0 || own <= 0)  // a price of 0
      return std::string(others == own ? "" : others > own ? more : less);
    const double ratio = others / own;
    if (std::abs(ratio - 1) < as_much) return std::string{};
    if (ratio >= 2 || ratio <= 0.5)
      return fmt::format("{} times {}", digits_text(ratio > 1 ? ratio : 1 / ratio, 3),
                         ratio > 1 ? more : less);
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
  if (!std::isfinite(more)) return false;
  return within_interval(more, loser.time_interval.first / loser.figures.time_s, least,
                         choice.time_interval.second / choice.figures.time_s);
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

CandidateResultOfPlan compared(const Planner& planner, std::size_t c, const Scenario& scenario) {
  CandidateResultOfPlan result = result_of(planner, c, scenario);
  result.compared = true;
  result.outcome = "beaten";
  result.value = known(value_of(scenario.objective, result.figures));
  result.bound = known(value_of(scenario.objective, planner.bound(c, scenario)));
  return result;
}

}  // namespace

std::string limit_text(double usd) { return usd < 0.0995 ? usd_text(usd) : fmt::format("{:.2f} USD", usd); }

CandidateResultOfPlan on_front(const Planner& planner, std::size_t c, const Scenario& scenario,
                               std::size_t choice) {
  CandidateResultOfPlan result = compared(planner, c, scenario);
  if (c == choice) result.outcome = "best";
  result.reason = c == choice ? "the choice" : instead(result, result_of(planner, choice, scenario));
  return result;
}

CandidateResultOfPlan runner_up(const Planner& planner, std::size_t c, const Scenario& scenario,
                                const CandidateResultOfPlan& choice) {
  CandidateResultOfPlan result = compared(planner, c, scenario);
  result.tie = is_tie(scenario.objective, result, choice);
  result.reason = why_not(scenario.objective, result, choice);
  return result;
}

const char* meaning_of(const std::string& reason, std::int64_t count) {
  struct Meaning {
    const char *reason, *of_one, *of_several;
  };
  static constexpr std::array meanings{
      Meaning{"bound", "cannot be better even at its bound", "cannot be better even at their bounds"},
      Meaning{"memory", "does not fit in memory", "do not fit in memory"},
      Meaning{"method", "trains otherwise than the goal's runs did, so that its epochs are not known",
              "train otherwise than the goal's runs did, so that their epochs are not known"},
      Meaning{"goal", "has a global batch that the goal's table has no epochs for",
              "have a global batch that the goal's table has no epochs for"},
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

}  // namespace convoy::planning
