// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/page/axis.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/results/report/sections.h"
#include "sim/results/report/step_charts.h"

namespace convoy::inline results {
namespace {

constexpr double row_height = 20, bar_height = 13, legend_height = 26;
constexpr double narrowest = 0.5;  ///< pixels; spans narrower than this, or this close, are drawn as one
constexpr std::size_t most_threads = 24, most_memories = 2, most_networks = 2;

/// What a span does, according to its name: operations are called "layer.phase", possibly with a micro-batch
/// "#2".
struct Kind {
  const char *name, *style;
};
constexpr std::array<Kind, 4> kinds{
    {{"forward", "c0"}, {"backward", "c1"}, {"update", "c2"}, {"communication and others", "c4"}}};

std::size_t kind_of(const std::string& name) {
  const std::string_view operation = std::string_view(name).substr(0, name.find(" #"));
  const auto ends = [&](std::string_view phase) { return operation.ends_with(phase); };
  if (ends(".forward")) return 0;
  if (ends(".data_gradient") || ends(".weight_gradient")) return 1;
  return ends(".update") ? 2 : 3;
}

struct Row {
  std::string label;
  const TraceThread* thread;
};

/// Spans of one kind that are so close that they are one bar.
struct Bar {
  double from, to;  ///< pixels
  std::size_t kind, spans;
  std::string title;
};

std::vector<Bar> bars_of(const TraceThread& thread, const Axis& axis) {
  std::vector<Bar> bars;
  for (const TraceSpan& span : thread.spans) {
    const double start_s = rounded_s(span.start_s), end_s = rounded_s(span.end_s);
    const Bar bar{
        axis.at(start_s), axis.at(end_s), kind_of(span.name), 1,
        fmt::format("{}: {} from {}", span.name, format_time(end_s - start_s), format_time(start_s))};
    const bool joins =
        !bars.empty() && bars.back().kind == bar.kind && bar.from - bars.back().to < narrowest &&
        (bar.to - bar.from < 2 * narrowest || bars.back().to - bars.back().from < 2 * narrowest);
    if (!joins) {
      bars.push_back(bar);
      continue;
    }
    bars.back().to = std::max(bars.back().to, bar.to);
    bars.back().title = fmt::format("{} spans", ++bars.back().spans);
  }
  return bars;
}

/// Streams over time.
std::string gantt(const std::vector<Row>& rows, double end_s) {
  double left = 0;
  for (const Row& row : rows) left = std::max(left, text_width(shortened(row.label)) + 12);
  const double bottom = legend_height + row_height * static_cast<double>(rows.size());
  const Axis axis({"time", time_unit(end_s)}, 0, end_s, left, step_chart_width - 14);
  Svg svg(step_chart_width, bottom + time_axis_height, "What the streams did in a step",
          {left, step_chart_width - 14, axis.high(), time_unit(end_s).size});
  double x = left;
  for (const Kind& kind : kinds) {
    svg.rect(x, 5, 11, 11, fmt::format("bar {}", kind.style));
    svg.text(x + 16, 15, kind.name, "label");
    x += 34 + text_width(kind.name);
  }
  draw_time_axis(svg, axis, left, legend_height - 2, bottom);
  double y = legend_height;
  for (const Row& row : rows) {
    svg.text(left - 8, y + row_height / 2 + 4, shortened(row.label), "label", Anchor::end);
    for (const Bar& bar : bars_of(*row.thread, axis))
      svg.rect(bar.from, y + (row_height - bar_height) / 2, std::max(narrowest, bar.to - bar.from),
               bar_height, fmt::format("bar {} over-time", kinds[bar.kind].style), bar.title);
    y += row_height;
  }
  return std::move(svg).finish();
}

/// The hosts that exchange most with others, in their order; for example a parameter server among its
/// workers.
std::vector<const TraceProcess*> busiest_hosts(const StepTrace& trace) {
  std::vector<std::pair<double, const TraceProcess*>> hosts;
  for (const TraceProcess& process : trace.processes)
    if (!process.traffic.empty()) hosts.emplace_back(exchanged_bytes(process.traffic), &process);
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (hosts.size() > most_networks) hosts.resize(most_networks);
  std::vector<const TraceProcess*> busiest;
  for (const auto& [bytes, host] : hosts) busiest.push_back(host);
  return busiest;
}

std::string step_of(const StepTrace& trace) {
  std::vector<Row> rows;
  std::vector<std::pair<std::string, const TraceMemory*>> memories;  // captions too
  std::size_t threads = 0, devices = 0;
  double end_s = 0;
  for (const TraceProcess& process : trace.processes) {
    for (const TraceThread& thread : process.threads) {
      if (thread.spans.empty()) continue;
      for (const TraceSpan& span : thread.spans) end_s = std::max(end_s, rounded_s(span.end_s));
      if (++threads <= most_threads)
        rows.push_back({fmt::format("{} {}", process.name, thread.name), &thread});
    }
    for (const TraceMemory& memory : process.memory)
      if (++devices <= most_memories && !memory.points.empty())
        memories.emplace_back(fmt::format("{} {}", process.name, memory.name), &memory);
  }
  if (rows.empty()) return {};
  std::string out =
      html_figure(gantt(rows, end_s),
                  rows.size() < threads
                      ? fmt::format("The first {} of {} streams; trace.json has all.", rows.size(), threads)
                      : "");
  for (std::size_t i = 0; i < memories.size(); ++i)
    out += html_figure(memory_chart(*memories[i].second, end_s),
                       fmt::format("{}{}", memories[i].first,
                                   devices > memories.size() && i + 1 == memories.size()
                                       ? fmt::format("; trace.json has it of {} devices", devices)
                                       : ""));
  for (const TraceProcess* host : busiest_hosts(trace))
    out +=
        html_figure(traffic_chart(*host, end_s), fmt::format("{}: to other hosts and from them", host->name));
  return "<div class=\"step-drawings\">\n" + out + "</div>\n";
}

}  // namespace

std::string timeline_section(const ReportContext& context, const std::vector<StepTrace>& traces) {
  std::string out;
  for (const StepTrace& trace : traces) {
    const std::string step = step_of(trace);
    if (step.empty()) continue;
    const RunFigures& run = context.run(trace.run);
    if (context.results.runs.size() > 1)
      out += fmt::format("<h3>Run {}: {}</h3>\n", escaped(run.id),
                         escaped(context.labels.label(trace.run, all_runs(context))));
    out += step;
  }
  if (out.empty()) return {};
  return "<h2>Timeline</h2>\n" +
         html_paragraph(
             "What the streams did in a step; of runs whose devices change, in the first step of each phase.",
             "small") +
         out;
}

}  // namespace convoy::results
