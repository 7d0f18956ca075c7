// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/results/report/axis.h"
#include "sim/results/report/html.h"
#include "sim/results/report/sections.h"
#include "sim/results/report/svg.h"
#include "sim/results/text.h"

namespace convoy {
namespace {

constexpr double width = 1080, row_height = 20, bar_height = 13, legend_height = 26, axis_height = 44;
constexpr double narrowest = 0.5;  ///< pixels; what is narrower or that near is drawn as one
constexpr std::size_t most_threads = 24, most_memories = 2;

/// What a span does, by its name: operations are called "layer.phase", perhaps with a micro-batch "#2".
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

/// Times to the nanosecond, as they stand in trace.json.
double rounded_s(double time_s) { return std::round(time_s * 1e9) * 1e-9; }

struct Row {
  std::string label;
  const TraceThread* thread;
};

/// Spans of one kind that lie so near that they are one bar.
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

void draw_time_axis(Svg& svg, const Axis& axis, double left, double top, double bottom) {
  for (const Tick& tick : axis.ticks()) {
    svg.line(axis.at(tick.value), top, axis.at(tick.value), bottom + 4, "grid");
    svg.text(axis.at(tick.value), bottom + 17, tick.text, "tick", Anchor::middle);
  }
  svg.line(left, bottom, width - 14, bottom, "axis");
  svg.text((left + width - 14) / 2, bottom + axis_height - 8, axis.title(), "title", Anchor::middle);
}

/// Streams over time.
std::string gantt(const std::vector<Row>& rows, double end_s) {
  double left = 0;
  for (const Row& row : rows) left = std::max(left, text_width(shortened(row.label)) + 12);
  const double bottom = legend_height + row_height * static_cast<double>(rows.size());
  const Axis axis({"time", time_unit(end_s)}, 0, end_s, left, width - 14);
  Svg svg(width, bottom + axis_height, "What the streams did in a step");
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
               bar_height, fmt::format("bar {}", kinds[bar.kind].style), bar.title);
    y += row_height;
  }
  return std::move(svg).finish();
}

/// A device's memory over time, classes on top of one another.
std::string memory_chart(const TraceMemory& memory, double end_s) {
  constexpr double left = 70, top = 30, bottom = 236;
  double most = 0;
  for (const TraceMemoryPoint& point : memory.points) {
    double sum = 0;
    for (const double bytes : point.bytes) sum += bytes;
    most = std::max(most, sum);
  }
  const Axis x({"time", time_unit(end_s)}, 0, end_s, left, width - 14),
      y({"memory", byte_unit(most)}, 0, most, bottom, top);
  Svg svg(width, bottom + axis_height, fmt::format("{} over a step", memory.name));
  double legend = left;
  for (std::size_t c = 0; c < memory_class_count; ++c) {
    svg.rect(legend, 5, 11, 11, fmt::format("bar {}", memory_styles[c]));
    svg.text(legend + 16, 15, memory_class_names[c], "label");
    legend += 34 + text_width(memory_class_names[c]);
  }
  for (const Tick& tick : y.ticks()) {
    svg.line(left, y.at(tick.value), width - 14, y.at(tick.value), "grid");
    svg.text(left - 7, y.at(tick.value) + 4, tick.text, "tick", Anchor::end);
  }
  svg.vertical_text(14, (top + bottom) / 2, y.title(), "title");
  // From the top class down, each area from zero, so that the next one covers what is not its own.
  for (std::size_t classes = memory_class_count; classes > 0; --classes) {
    std::string path = fmt::format("M{} {}", px(x.at(0)), px(bottom));
    for (std::size_t i = 0; i < memory.points.size(); ++i) {
      const TraceMemoryPoint& point = memory.points[i];
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += point.bytes[c];
      const double until_s = i + 1 < memory.points.size() ? rounded_s(memory.points[i + 1].time_s) : end_s;
      path += fmt::format("L{} {}H{}", px(x.at(rounded_s(point.time_s))), px(y.at(sum)), px(x.at(until_s)));
    }
    svg.path(path + fmt::format("V{}Z", px(bottom)), fmt::format("area {}", memory_styles[classes - 1]));
  }
  draw_time_axis(svg, x, left, bottom, bottom);
  return std::move(svg).finish();
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
  return out;
}

}  // namespace

std::string timeline_section(const ReportContext& context, const std::vector<StepTrace>& traces) {
  std::string out;
  for (const StepTrace& trace : traces) {
    const std::string step = step_of(trace);
    if (step.empty()) continue;
    const RunResult& run = context.run(trace.run);
    if (context.results.runs.size() > 1)
      out += fmt::format("<h3>Run {}: {}</h3>\n", escaped(run.id),
                         escaped(context.labels.labels(all_runs(context))[trace.run]));
    out += step;
  }
  if (out.empty()) return {};
  return "<h2>Timeline</h2>\n" +
         html_paragraph(
             "What the streams did in a step; of runs whose devices change, in the first step of each phase.",
             "small") +
         out;
}

}  // namespace convoy
