// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/results/report/sections.h"
#include "sim/results/write_explain.h"

namespace convoy::inline results {

std::string variability_section(const ReportContext& context) {
  constexpr std::size_t most_runs = 20;
  std::vector<HtmlRow> rows;
  std::size_t all = 0;
  for (const std::size_t r : all_runs(context)) {
    if (!context.run(r).has_variability || ++all > most_runs) continue;
    const std::shared_ptr<const RunResult> run = context.whole(r);
    rows.push_back({{run->id, std::to_string(run->variability->runs), variability_text(*run)}});
  }
  if (rows.empty()) return {};
  return "<h2>What varies</h2>\n" + html_table({{"run"}, {"repetitions", true}, {"came to"}}, rows) +
         html_paragraph(left_out(rows.size(), all), "small");
}

std::string explain_section(const ReportContext& context) {
  constexpr std::size_t most_runs = 8;
  std::vector<std::size_t> all;
  for (const std::size_t r : all_runs(context))
    if (context.run(r).has_counterfactuals) all.push_back(r);
  if (all.empty()) return {};
  std::string out = "<h2>What would help</h2>\n";
  const std::vector<std::size_t> runs = fastest(context, all, most_runs);
  for (const std::size_t r : runs) {
    const std::shared_ptr<const RunResult> whole = context.whole(r);
    const RunResult& run = *whole;
    // On a telephone, columns that say nothing take the room of those that do.
    const auto any = [&](auto text) {
      return std::any_of(run.counterfactuals.begin(), run.counterfactuals.end(),
                         [&](const Counterfactual& row) { return !text(row, run).empty(); });
    };
    const bool has_usd = any(gain_usd_text), has_memory = any(gain_memory_text);
    std::vector<HtmlColumn> columns{{"change"}, {"step", true}, {"gain"}};
    if (has_usd) columns.push_back({"an epoch"});
    if (has_memory) columns.push_back({"memory"});
    std::vector<HtmlRow> rows;
    for (const Counterfactual& row : run.counterfactuals) {
      HtmlRow& cells =
          rows.emplace_back(HtmlRow{{row.change, format_time(row.step_time_s), gain_text(row, run)}});
      if (has_usd) cells.cells.push_back(gain_usd_text(row, run));
      if (has_memory) cells.cells.push_back(gain_memory_text(row, run));
    }
    out += html_paragraph(fmt::format("Run {}: a step takes {}; {}.", run.id, format_time(run.step_time_s),
                                      run.bottleneck.text));
    out += html_table(columns, rows);
    if (!run.refused_changes.empty()) {
      std::string refused = "Not tried:";
      for (const RefusedChange& change : run.refused_changes)
        refused += fmt::format(" {} ({});", change.change, change.reason);
      refused.back() = '.';
      out += html_paragraph(refused, "small");
    }
  }
  return out + html_paragraph(left_out(runs.size(), all.size()), "small");
}

}  // namespace convoy::results
