// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/results/report/sections.h"
#include "sim/results/write_search.h"

namespace convoy::inline results {

std::string search_section(const ReportContext& context) {
  constexpr std::size_t most_runs = 4, most_rows = 25;
  std::string out;
  std::size_t searches = 0;
  for (const std::size_t r : all_runs(context)) {
    if (!context.run(r).has_search || ++searches > most_runs) continue;
    const std::shared_ptr<const RunResult> whole = context.whole(r);
    const RunResult& run = *whole;
    std::vector<HtmlRow> rows;
    const std::vector<CandidateResult>& ranking = run.search->ranking;
    for (std::size_t i = 0; i < std::min(most_rows, ranking.size()); ++i)
      rows.push_back({{ranking[i].strategy, found_text(run.search->objective, ranking[i]), ranking[i].reason},
                      i == 0 ? "best" : ""});
    out += html_paragraph(search_headline(run));
    out += html_table({{"strategy"}, {run.search->objective, true}, {"why"}}, rows);
    if (ranking.size() > most_rows)
      out += html_paragraph(fmt::format("And {} more in results.json.", ranking.size() - most_rows), "small");
  }
  if (out.empty()) return {};
  if (searches > most_runs)
    out += html_paragraph(fmt::format("The first {} of {} searches.", most_runs, searches), "small");
  return "<h2>Search for a strategy</h2>\n" + out;
}

std::string layout_section(const ReportContext& context) {
  constexpr std::size_t most_runs = 4, most_rows = 40;
  std::string out;
  std::vector<std::size_t> all;
  for (const std::size_t r : all_runs(context))
    if (context.run(r).has_layouts) all.push_back(r);
  const std::vector<std::size_t> runs = fastest(context, all, most_runs);
  for (const std::size_t r : runs) {
    const std::vector<LayerGroup> layouts = context.whole(r)->layouts;
    std::vector<HtmlRow> rows;
    for (std::size_t i = 0; i < std::min(most_rows, layouts.size()); ++i)
      rows.push_back(
          {{layouts[i].layout, some_of(layouts[i].layers, 4), format_bytes(layouts[i].parameter_bytes),
            format_bytes(layouts[i].exchange_bytes), format_bytes(layouts[i].gradient_bytes)}});
    if (context.results.runs.size() > 1)
      out += fmt::format("<h3>Run {}: {}, {}</h3>\n", escaped(context.run(r).id),
                         escaped(context.run(r).words.model), escaped(context.run(r).words.strategy));
    out += html_table(
        {{"layout"}, {"layers"}, {"parameters", true}, {"exchanged", true}, {"gradients", true}}, rows);
    if (layouts.size() > most_rows)
      out += html_paragraph(fmt::format("And {} more in results.json.", layouts.size() - most_rows), "small");
  }
  if (out.empty()) return {};
  return "<h2>Layouts of layers</h2>\n" + out + html_paragraph(left_out(runs.size(), all.size()), "small");
}

}  // namespace convoy::results
