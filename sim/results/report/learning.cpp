// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/xy_chart.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_curves = 12;

/// Accuracy, or loss, of the runs over time or over steps.
std::string learning_chart(const ReportContext& context, const std::vector<std::size_t>& runs, bool over_time,
                           bool accuracy) {
  double longest_s = 0;
  XyChart chart;
  for (const std::size_t r : runs) {
    const std::shared_ptr<const RunResult> whole = context.whole(r);
    const RunResult& run = *whole;
    longest_s = std::max(longest_s, run.learning.back().time_s);
    XySeries series{fmt::format("run {}: {}", run.id, run.strategy), {}, chart.series.size()};
    for (const LearningPoint& point : run.learning)
      series.points.push_back(
          {over_time ? point.time_s : static_cast<double>(point.step),
           accuracy ? 100 * point.accuracy : point.loss,
           fmt::format("run {}, step {}, {}: accuracy {:.1f} %, loss {:.4g}", run.id, point.step,
                       format_time(point.time_s), 100 * point.accuracy, point.loss)});
    chart.series.push_back(std::move(series));
  }
  const std::string what = accuracy ? "accuracy" : "loss";
  chart.label = fmt::format("{} over {}", what, over_time ? "time" : "steps");
  chart.x = over_time ? AxisRequest{"time", time_unit(longest_s)} : AxisRequest{"steps"};
  chart.y = accuracy ? AxisRequest{"held-out images classified right", {1, "%"}} : AxisRequest{"loss"};
  chart.width = 390;
  chart.labels = !over_time;
  chart.named = points_are_named(context);
  return draw(chart);
}

}  // namespace

std::string learning_section(const ReportContext& context) {
  std::vector<std::size_t> runs;
  std::size_t all = 0;
  for (const std::size_t r : all_runs(context))
    if (context.run(r).has_learning && ++all <= most_curves) runs.push_back(r);
  if (runs.empty()) return {};
  std::string out = "<h2>What the network learns</h2>\n";
  for (const bool accuracy : {true, false})
    out += html_figure(
        fmt::format("<div class=\"charts\">{}{}</div>\n", learning_chart(context, runs, true, accuracy),
                    learning_chart(context, runs, false, accuracy)),
        accuracy ? "Accuracy on images that are held out, over simulated time and over steps "
                   "of a global batch."
                 : "Mean loss of the images since the point before.");
  return out + html_paragraph(all > runs.size() ? fmt::format("The first {} of {} runs.", runs.size(), all)
                                                : std::string{},
                              "small");
}

}  // namespace convoy::results
