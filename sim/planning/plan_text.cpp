// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/quantity.h"
#include "sim/page/text.h"
#include "sim/planning/why_not.h"
#include "sim/planning/write_plan.h"
#include "topologies/price_age.h"

namespace convoy::inline planning {
namespace {

/// Columns as wide as they need; numbers are text here.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{}{}{}", c ? "  " : "", row[c], std::string(widths[c] - width_of(row[c]), ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::vector<std::string> cells(const CandidateResultOfPlan& candidate) {
  return {text_of(candidate.order) + (candidate.doubtful ? doubtful_mark : ""),
          candidate.own                      ? "own"
          : candidate.market == Market::spot ? "spot"
                                             : "on demand",
          std::string(to_string(candidate.precision)),
          std::to_string(candidate.global_batch),
          candidate.label,
          digits_text(candidate.figures.epochs, 4),
          hours_text(candidate.figures.time_s),
          usd_text(candidate.figures.cost_usd),
          fmt::format("{} kWh", number_text(candidate.figures.energy_j / joules_a_kwh))};
}

std::string candidates_table(const std::vector<CandidateResultOfPlan>& candidates) {
  std::vector<std::vector<std::string>> rows{
      {"machines", "market", "precision", "global batch", "strategy", "epochs", "time", "cost", "energy"}};
  for (const CandidateResultOfPlan& candidate : candidates) rows.push_back(cells(candidate));
  return aligned(rows);
}

std::string no_choice_text(const PlanAnswer& answer) {
  std::string text = "no candidate meets the constraints\n";
  if (answer.nearest) {
    text += fmt::format("nearest: {}: {}\n", answer.nearest->name, answer.nearest->text);
    if (answer.nearest->candidate)
      text += fmt::format("  {}\n  {}\n", order_text(*answer.nearest->candidate),
                          training_text(*answer.nearest->candidate));
  }
  return text;
}

std::string sensitivity_text(const std::vector<Change>& changes) {
  if (changes.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Change& change : changes)
    rows.push_back({change.text + ":", change.choice
                                           ? fmt::format("{}, {}, {}", text_of(change.choice->order),
                                                         hours_text(change.choice->figures.time_s),
                                                         usd_text(change.choice->figures.cost_usd))
                                           : "nothing meets the constraints"});
  return "\nwhat would change it: another choice wins if\n" + aligned(rows);
}

}  // namespace

std::string usd_text(double usd) {
  if (!std::isfinite(usd)) return "price not known";
  // Small sums have two digits too: nothing above 0 is shown as 0.
  const int decimals = usd >= 99.95                ? 0
                       : usd >= 9.995              ? 1
                       : usd >= 0.0995 || usd <= 0 ? 2
                                                   : 1 - static_cast<int>(std::floor(std::log10(usd)));
  return fmt::format("{:.{}f} USD", usd, decimals);
}

std::string hour_text(const CandidateResultOfPlan& candidate) {
  const std::string electricity =
      candidate.figures.electricity_usd && candidate.figures.time_s > 0
          ? fmt::format("{}/h of electricity",
                        usd_text(*candidate.figures.electricity_usd * 3600 / candidate.figures.time_s))
          : "";
  if (candidate.usd_per_h <= 0 && !electricity.empty()) return electricity;
  const std::string rent = candidate.usd_per_h < 9.995 ? usd_text(candidate.usd_per_h)
                                                       : fmt::format("{:.2f} USD", candidate.usd_per_h);
  return fmt::format("{}/h{}{}", rent, electricity.empty() ? "" : " and ", electricity);
}

std::string hour_text(const CandidateResultOfPlan& candidate, const Price& price) {
  if (price.usd_per_hour <= 0 && candidate.figures.electricity_usd) return "its electricity";
  return fmt::format("{:g} USD/h", price.usd_per_hour);
}

std::string hours_text(double seconds) {
  const double hours = seconds / 3600;
  return hours < 1 ? format_time(seconds) : fmt::format("{} h", number_text(hours));
}

std::string order_text(const CandidateResultOfPlan& candidate) {
  std::string text = candidate.own
                         ? fmt::format("use {}", text_of(candidate.order))
                         : fmt::format("rent {} {}", text_of(candidate.order),
                                       candidate.market == Market::spot ? "on the spot market" : "on demand");
  text += fmt::format(" for {}", hours_text(candidate.figures.time_s));
  if (!candidate.region.empty()) text += fmt::format(" in {}", candidate.region);
  if (std::isfinite(candidate.figures.cost_usd))
    text += fmt::format(": {} ({} to {} at 80 %)", usd_text(candidate.figures.cost_usd),
                        usd_text(candidate.run_cost_interval.first),
                        usd_text(candidate.run_cost_interval.second));
  text += fmt::format(", {} kWh", number_text(candidate.figures.energy_j / joules_a_kwh));
  if (std::isfinite(candidate.figures.carbon_kg))
    text += fmt::format(", {} kg CO2", number_text(candidate.figures.carbon_kg));
  if (candidate.interruptible)
    text += fmt::format("; {} interruptions expected ({:.0f} to {:.0f} at 80 %), {}",
                        number_text(candidate.figures.interruptions), candidate.interruptions_interval.first,
                        candidate.interruptions_interval.second,
                        candidate.reaction == OnInterruption::wait
                            ? "each waited out"
                            : "after each on with the machines that are left");
  return text;
}

std::string age_text(const Price& price, const std::string& newest) {
  if (price.region.empty() || newest.empty()) return {};
  const double years = years_between(last_seen(price), newest);
  constexpr double a_month = 1.0 / 12;
  return years < a_month ? "" : fmt::format(", {:.1f} years before the newest price", years);
}

std::vector<std::string> price_texts(const CandidateResultOfPlan& candidate, const std::string& newest) {
  std::vector<std::string> texts;
  for (const Price& price : candidate.prices) {
    const std::string origin = price.region.empty() ? price.source : price.origin();
    texts.push_back(fmt::format("{}: {} ({}{})", price.server, hour_text(candidate, price), origin,
                                age_text(price, newest)));
  }
  for (const std::string& doubt : candidate.doubts) texts.push_back("doubt: " + doubt);
  return texts;
}

std::string training_text(const CandidateResultOfPlan& candidate) {
  return fmt::format("{}, {}, {} images a device, {} a step of {}, {} epochs", candidate.label,
                     to_string(candidate.precision), candidate.batch_per_device, candidate.global_batch,
                     format_time(candidate.step_time_s), digits_text(candidate.figures.epochs, 4));
}

std::string question_text(const PlanAnswer& answer) {
  static const std::map<PlanObjective, const char*> words{{PlanObjective::cost, "at the least cost"},
                                                          {PlanObjective::time, "in the least time"},
                                                          {PlanObjective::energy, "with the least energy"},
                                                          {PlanObjective::carbon, "with the least carbon"},
                                                          {PlanObjective::front, "at the least time x cost"}};
  std::string text = words.at(answer.objective);
  const PlanConstraints& limits = answer.constraints;
  if (limits.deadline_s) text += fmt::format(", within {}", hours_text(*limits.deadline_s));
  if (limits.budget_usd) text += fmt::format(", for at most {}", usd_text(*limits.budget_usd));
  if (limits.max_devices) text += fmt::format(", on at most {} devices", *limits.max_devices);
  if (limits.max_global_batch) text += fmt::format(", global batch at most {}", *limits.max_global_batch);
  return text;
}

std::string effort_text(const PlanAnswer& answer) {
  std::string text = fmt::format("{} candidates, {} planned, {} simulated", answer.candidates, answer.planned,
                                 answer.simulated);
  for (const auto& [reason, count] : answer.pruned)
    text += fmt::format("; {} {}", count, meaning_of(reason, count));
  return text;
}

/// Doubts that some of these candidates have and the choice has not, each with how many have it.
std::string doubts_text(const std::vector<CandidateResultOfPlan>& candidates,
                        const CandidateResultOfPlan& choice) {
  std::map<std::string, int> having;
  for (const CandidateResultOfPlan& candidate : candidates)
    for (const std::string& doubt : candidate.doubts)
      if (std::find(choice.doubts.begin(), choice.doubts.end(), doubt) == choice.doubts.end())
        ++having[doubt];
  std::string text;
  if (std::any_of(candidates.begin(), candidates.end(), [](const auto& each) { return each.doubtful; }))
    text += "  * has a doubt: it is the choice only where none without one comes within its 80 % interval\n";
  for (const auto& [doubt, count] : having) text += fmt::format("  doubt of {} of these: {}\n", count, doubt);
  return text;
}

std::string assumes_text(const PlanAnswer& answer) {
  if (answer.assumes.empty()) return {};
  std::string text = "\nassumes\n";
  for (const Assumption& each : answer.assumes)
    text +=
        fmt::format("  {}: {} ({}); {}\n", each.what, each.value, to_string(each.grade), each.would_change);
  text += "\nnot included\n";
  for (const std::string& each : answer.not_included) text += fmt::format("  {}\n", each);
  return text;
}

std::string scenarios_text(const PlanAnswer& answer) {
  if (answer.scenarios.empty()) return {};
  std::string text = "\nscenarios\n";
  for (const VariantChoice& each : answer.scenarios)
    text += fmt::format("  {}: {}\n", each.name,
                        each.choice ? order_text(*each.choice) : "nothing meets the constraints");
  return text;
}

std::string left_out_texts(const PlanAnswer& answer) {
  std::string text;
  for (const LeftOut& each : answer.left_out) text += left_out_text(each) + "\n";
  return text;
}

std::string table(const PlanAnswer& answer) {
  std::string text = fmt::format("{}: {}, {}\n\n", answer.name, answer.goal, question_text(answer));
  const std::string effort =
      scenarios_text(answer) + "\n" + effort_text(answer) + "\n" + left_out_texts(answer);
  if (!answer.choice) return text + no_choice_text(answer) + effort;
  text += fmt::format("{}\n  {}\n  {}\n", order_text(*answer.choice), training_text(*answer.choice),
                      answer.choice->bottleneck);
  for (const std::string& price : price_texts(*answer.choice, answer.newest_price))
    text += fmt::format("  {}\n", price);
  text += "\nwhat time costs (nothing is both quicker and cheaper)\n" + candidates_table(answer.front) +
          doubts_text(answer.front, *answer.choice);
  if (!answer.runners_up.empty()) {
    text += "\nthe best of other servers\n" + candidates_table(answer.runners_up) +
            doubts_text(answer.runners_up, *answer.choice);
    for (const CandidateResultOfPlan& runner : answer.runners_up)
      text += fmt::format("  {}: {}\n", text_of(runner.order), runner.reason);
  }
  return text + sensitivity_text(answer.sensitivity) + assumes_text(answer) + effort;
}

}  // namespace convoy::planning
