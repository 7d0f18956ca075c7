// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/page/html.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_failures = 200;

std::string coordinates_text(const FailedPoint& failed) {
  std::string text;
  for (const auto& [path, value] : failed.point)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", path, to_flow(value));
  return text;
}

}  // namespace

std::string failures_section(const ReportContext& context) {
  const SweepResults& results = context.results;
  const std::size_t ended = results.runs.size() + results.failed.size();
  const auto points = static_cast<std::size_t>(results.points.value_or(static_cast<std::int64_t>(ended)));
  if (points == results.runs.size()) return {};
  std::string text = fmt::format("{} of {} points of the sweep have results; {} failed", results.runs.size(),
                                 points, results.failed.size());
  if (points > ended) text += fmt::format(", {} were not computed", points - ended);
  std::vector<HtmlRow> rows;
  for (std::size_t i = 0; i < std::min(results.failed.size(), most_failures); ++i) {
    const FailedPoint& failed = results.failed[i];
    rows.push_back({{failed.id, coordinates_text(failed), failed.kind, failed.reason}});
  }
  std::string html = "<h2>Points without results</h2>\n" + html_paragraph(text + '.');
  if (!rows.empty()) html += html_table({{"point", true}, {"values"}, {"kind"}, {"reason"}}, rows);
  if (rows.size() < results.failed.size())
    html += html_paragraph(fmt::format("The first {} that failed; results.json has all.", rows.size()));
  return html;
}

}  // namespace convoy::results
