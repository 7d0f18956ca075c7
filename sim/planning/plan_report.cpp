// SPDX-License-Identifier: MIT
#include "sim/planning/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/page/xy_chart.h"
#include "sim/planning/write_plan.h"

namespace convoy::inline planning {
namespace {

std::string kwh_text(const CandidateResultOfPlan& candidate) {
  return number_text(candidate.figures.energy_j / joules_a_kwh);
}

std::string interval_text(const CandidateResultOfPlan& candidate) {
  return fmt::format("{} to {}", usd_text(candidate.run_cost_interval.first),
                     usd_text(candidate.run_cost_interval.second));
}

std::string order_section(const PlanAnswer& answer) {
  if (!answer.choice) {
    std::string out = html_paragraph("No candidate meets the constraints.");
    if (answer.nearest)
      out += html_paragraph(fmt::format("Nearest is {}: {}.", answer.nearest->name, answer.nearest->text));
    return out;
  }
  const CandidateResultOfPlan& choice = *answer.choice;
  std::string out = "<div class=\"cards\">\n";
  out += html_card("machines", text_of(choice.order), "",
                   choice.own                      ? "one's own"
                   : choice.market == Market::spot ? "on the spot market"
                                                   : "on demand");
  out += html_card("time", hours_text(choice.figures.time_s), "",
                   fmt::format("{} to {}", hours_text(choice.run_time_interval.first),
                               hours_text(choice.run_time_interval.second)));
  out += html_card("cost", usd_text(choice.figures.cost_usd), "", interval_text(choice));
  out += html_card("energy", kwh_text(choice), "kWh",
                   std::isfinite(choice.figures.carbon_kg)
                       ? fmt::format("{} kg CO2", number_text(choice.figures.carbon_kg))
                       : "");
  out += "</div>\n";
  out += html_paragraph(fmt::format("{}; {}.", training_text(choice), choice.bottleneck));
  for (const std::string& price : price_texts(choice, answer.newest_price))
    out += html_paragraph(price, "small");
  return out;
}

/// Time over cost: a series a kind of server, the front joined behind them.
std::string front_section(const PlanAnswer& answer) {
  std::map<std::string, XySeries> kinds;
  double least = INFINITY, most = 0, quickest = INFINITY, slowest = 0;
  const auto add = [&](const CandidateResultOfPlan& candidate) {
    if (!std::isfinite(candidate.figures.cost_usd)) return;
    const std::string kind = kinds_of(candidate.order) + (candidate.doubtful ? doubtful_mark : "");
    XySeries& series = kinds.try_emplace(kind, XySeries{kind, {}, kinds.size(), false, true}).first->second;
    const double hours = candidate.figures.time_s / 3600;
    const std::string title =
        fmt::format("{}: {}, {}", text_of(candidate.order), hours_text(candidate.figures.time_s),
                    usd_text(candidate.figures.cost_usd));
    const bool known = std::any_of(series.points.begin(), series.points.end(), [&](const XyPoint& point) {
      return point.x == hours && point.y == candidate.figures.cost_usd;
    });
    if (!known)
      series.points.push_back({hours,
                               candidate.figures.cost_usd,
                               title,
                               {{candidate.run_cost_interval.first, candidate.run_cost_interval.second}}});
    quickest = std::min(quickest, hours), slowest = std::max(slowest, hours);
    least = std::min(least, candidate.run_cost_interval.first);
    most = std::max(most, candidate.run_cost_interval.second);
  };
  XyChart chart;
  for (const CandidateResultOfPlan& candidate : answer.front) {
    add(candidate);
    if (std::isfinite(candidate.figures.cost_usd))
      chart.ideal.push_back({candidate.figures.time_s / 3600, candidate.figures.cost_usd});
  }
  for (const CandidateResultOfPlan& candidate : answer.runners_up) add(candidate);
  if (kinds.empty()) return {};
  for (auto& [kind, series] : kinds) chart.series.push_back(std::move(series));
  chart.label = "cost of reaching the goal over the time it takes";
  chart.x = {"time (h)", plain, wants_log(quickest, slowest, 8), false};
  chart.y = {"cost (USD)", plain, wants_log(least, most, 8), false};
  chart.ideal_label = "front";
  chart.width = 620;
  return "<h2>What time costs</h2>\n" +
         html_figure(draw(chart),
                     "On the dashed line nothing is both quicker and cheaper; "
                     "beside it the best of other servers. Pale bars: 80 % intervals of "
                     "the cost. * has a doubt, which the tables say.");
}

/// What is doubtful of candidates in the tables, each doubt once with a number that its rows refer to. Those of the
/// choice stand above.
class NumberedDoubts {
 public:
  explicit NumberedDoubts(const std::vector<std::string>& of_choice) : of_choice_(of_choice) {}

  /// " [1] [3]"
  std::string marks_of(const CandidateResultOfPlan& candidate) {
    std::string marks;
    for (const std::string& doubt : candidate.doubts) {
      if (std::find(of_choice_.begin(), of_choice_.end(), doubt) != of_choice_.end()) continue;
      const auto known = std::find(doubts_.begin(), doubts_.end(), doubt);
      marks += fmt::format(" [{}]", known - doubts_.begin() + 1);
      if (known == doubts_.end()) doubts_.push_back(doubt);
    }
    return marks;
  }

  std::string section() const {
    if (doubts_.empty()) return {};
    std::string out = "<h2>Doubts</h2>\n" +
                      html_paragraph(
                          "A candidate with a doubt of its own is the choice only where none without one "
                          "comes within its 80 % interval.",
                          "small");
    for (std::size_t i = 0; i < doubts_.size(); ++i)
      out += html_paragraph(fmt::format("[{}] {}", i + 1, doubts_[i]), "small");
    return out;
  }

 private:
  const std::vector<std::string>& of_choice_;
  std::vector<std::string> doubts_;
};

/// Prices of an hour with region and dates.
std::string prices_cell(const CandidateResultOfPlan& candidate, const PlanAnswer& answer) {
  std::string text;
  for (const Price& price : candidate.prices)
    text += fmt::format("{}{}, {}{}", text.empty() ? "" : "; ", hour_text(candidate, price),
                        price.region.empty() ? price.source : price.origin(),
                        age_text(price, answer.newest_price));
  return text;
}

HtmlRow row_of(const CandidateResultOfPlan& candidate, const PlanAnswer& answer, NumberedDoubts& doubts,
               bool best) {
  return {
      {text_of(candidate.order) + doubts.marks_of(candidate), prices_cell(candidate, answer),
       std::string(to_string(candidate.precision)), std::to_string(candidate.global_batch), candidate.label,
       digits_text(candidate.figures.epochs, 4), hours_text(candidate.figures.time_s),
       usd_text(candidate.figures.cost_usd), interval_text(candidate), kwh_text(candidate), candidate.reason},
      best ? "best" : ""};
}

std::string tables(const PlanAnswer& answer) {
  if (!answer.choice) return {};
  NumberedDoubts doubts(answer.choice->doubts);
  std::vector<HtmlRow> rows{row_of(*answer.choice, answer, doubts, true)};
  for (const CandidateResultOfPlan& candidate : answer.runners_up)
    rows.push_back(row_of(candidate, answer, doubts, false));
  std::vector<HtmlColumn> columns{{"machines"}, {"price"},        {"precision"},  {"global batch", true},
                                  {"strategy"}, {"epochs", true}, {"time", true}, {"cost", true},
                                  {"interval"}, {"kWh", true},    {"why not"}};
  std::string out = "<h2>The choice, and the best of other servers</h2>\n" + html_table(columns, rows);
  rows.clear();
  columns.back().title = "against the choice";
  for (const CandidateResultOfPlan& candidate : answer.front)
    rows.push_back(row_of(candidate, answer, doubts, false));
  out += "<h2>The front</h2>\n" + html_table(columns, rows) + doubts.section();
  if (answer.sensitivity.empty()) return out;
  rows.clear();
  for (const Change& change : answer.sensitivity)
    rows.push_back(
        {{change.text, change.choice ? text_of(change.choice->order) : "nothing meets the constraints",
          change.choice ? hours_text(change.choice->figures.time_s) : "",
          change.choice ? usd_text(change.choice->figures.cost_usd) : ""}});
  return out + "<h2>What would change it</h2>\n" +
         html_table({{"if"}, {"the choice is"}, {"time", true}, {"cost", true}}, rows);
}

/// The choices of all scenarios beside the plan's own.
std::string scenarios_section(const PlanAnswer& answer) {
  if (answer.scenarios.empty()) return {};
  std::vector<HtmlRow> rows;
  const auto add = [&](const std::string& name, const std::string& set,
                       const std::optional<CandidateResultOfPlan>& choice, bool own) {
    if (!choice) {
      rows.push_back({{name, set, "nothing meets the constraints", "", "", "", "", ""}});
      return;
    }
    rows.push_back({{name, set, text_of(choice->order), choice->label, hours_text(choice->figures.time_s),
                     usd_text(choice->figures.cost_usd), interval_text(*choice), kwh_text(*choice)},
                    own ? "best" : ""});
  };
  add("as planned", "", answer.choice, true);
  for (const VariantChoice& each : answer.scenarios) {
    std::string set;
    for (const std::string& one : each.set) set += (set.empty() ? "" : ", ") + one;
    add(each.name, set, each.choice, false);
  }
  return "<h2>Scenarios</h2>\n" + html_table({{"scenario"},
                                              {"with"},
                                              {"machines"},
                                              {"strategy"},
                                              {"time", true},
                                              {"cost", true},
                                              {"interval"},
                                              {"kWh", true}},
                                             rows);
}

std::string assumes_section(const PlanAnswer& answer) {
  if (answer.assumes.empty()) return {};
  std::vector<HtmlRow> rows;
  for (const Assumption& each : answer.assumes)
    rows.push_back({{each.what, each.value, std::string(to_string(each.grade)), each.would_change}});
  std::string out = "<h2>What it assumes</h2>\n" +
                    html_table({{"what"}, {"value"}, {"known as"}, {"another one would change"}}, rows) +
                    "<h2>What it does not include</h2>\n";
  for (const std::string& each : answer.not_included) out += html_paragraph(each, "small");
  return out;
}

std::string left_out_paragraphs(const PlanAnswer& answer) {
  std::string out;
  for (const LeftOut& each : answer.left_out) out += html_paragraph(left_out_text(each), "small");
  return out;
}

}  // namespace

void write_report(const PlanAnswer& answer, std::ostream& out) {
  std::string body = fmt::format("<h1>{}</h1>\n", escaped(answer.name)) +
                     html_paragraph(fmt::format("{}, {}.", answer.goal, question_text(answer)));
  body += order_section(answer) + front_section(answer) + tables(answer) + scenarios_section(answer) +
          assumes_section(answer) + html_paragraph(effort_text(answer), "small") +
          left_out_paragraphs(answer);
  body += html_paragraph(fmt::format("convoy {}, SimGrid {}; experiment {}", answer.manifest.version,
                                     answer.manifest.simgrid, answer.manifest.config_sha256),
                         "small");
  out << html_page(answer.name, body);
}

}  // namespace convoy::planning
