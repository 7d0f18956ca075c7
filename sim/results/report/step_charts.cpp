// SPDX-License-Identifier: MIT
#include "sim/results/report/step_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/results/report/sections.h"

namespace convoy::inline results {
namespace {

constexpr double chart_left = 70, chart_top = 30, chart_bottom = 236;  ///< pixels

/// Horizontal lines at the ticks, and the axis' title.
void draw_value_axis(Svg& svg, const Axis& axis) {
  for (const Tick& tick : axis.ticks()) {
    svg.line(chart_left, axis.at(tick.value), step_chart_width - 14, axis.at(tick.value), "grid");
    svg.text(chart_left - 7, axis.at(tick.value) + 4, tick.text, "tick", Anchor::end);
  }
  svg.vertical_text(14, (chart_top + chart_bottom) / 2, axis.title(), "title");
}

/// Bytes sent and received within [from_s, to_s]; `next` is the first point after from_s.
struct Exchanged {
  double sent_bytes = 0, received_bytes = 0;
};

Exchanged exchanged_within(const std::vector<TraceTrafficPoint>& traffic, std::size_t next, double from_s,
                           double to_s) {
  Exchanged bytes;
  for (double at_s = from_s; at_s < to_s; ++next) {
    const double until_s = next < traffic.size() ? std::min(to_s, rounded_s(traffic[next].time_s)) : to_s;
    if (next > 0) {
      bytes.sent_bytes += traffic[next - 1].sent_Bps * (until_s - at_s);
      bytes.received_bytes += traffic[next - 1].received_Bps * (until_s - at_s);
    }
    at_s = until_s;
    if (next >= traffic.size()) break;
  }
  return bytes;
}

}  // namespace

void draw_time_axis(Svg& svg, const Axis& axis, double left, double top, double bottom) {
  for (const Tick& tick : axis.ticks()) {
    svg.line(axis.at(tick.value), top, axis.at(tick.value), bottom + 4, "grid time-tick");
    svg.text(axis.at(tick.value), bottom + 17, tick.text, "tick time-tick", Anchor::middle);
  }
  svg.line(left, bottom, step_chart_width - 14, bottom, "axis");
  svg.text((left + step_chart_width - 14) / 2, bottom + time_axis_height - 8, axis.title(), "title",
           Anchor::middle);
}

std::string memory_chart(const TraceMemory& memory, double end_s) {
  constexpr double left = chart_left, top = chart_top, bottom = chart_bottom;
  double most = 0;
  for (const TraceMemoryPoint& point : memory.points) {
    double sum = 0;
    for (const double bytes : point.bytes) sum += bytes;
    most = std::max(most, sum);
  }
  const Axis x({"time", time_unit(end_s)}, 0, end_s, left, step_chart_width - 14),
      y({"memory", byte_unit(most)}, 0, most, bottom, top);
  Svg svg(step_chart_width, bottom + time_axis_height, fmt::format("{} over a step", memory.name),
          {left, step_chart_width - 14, x.high(), time_unit(end_s).size});
  double legend = left;
  for (std::size_t c = 0; c < memory_class_count; ++c) {
    svg.rect(legend, 5, 11, 11, fmt::format("bar {}", memory_styles[c]));
    svg.text(legend + 16, 15, memory_class_names[c], "label");
    legend += 34 + text_width(memory_class_names[c]);
  }
  draw_value_axis(svg, y);
  // From the top class down, each area starting at zero, so that the next one covers what is not its own.
  for (std::size_t classes = memory_class_count; classes > 0; --classes) {
    std::string path = fmt::format("M{} {}", px(x.at(0)), px(bottom));
    for (std::size_t i = 0; i < memory.points.size(); ++i) {
      const TraceMemoryPoint& point = memory.points[i];
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += point.bytes[c];
      const double until_s = i + 1 < memory.points.size() ? rounded_s(memory.points[i + 1].time_s) : end_s;
      path += fmt::format("L{} {}H{}", px(x.at(rounded_s(point.time_s))), px(y.at(sum)), px(x.at(until_s)));
    }
    svg.path(path + fmt::format("V{}Z", px(bottom)),
             fmt::format("area {} over-time", memory_styles[classes - 1]));
  }
  draw_time_axis(svg, x, left, bottom, bottom);
  return std::move(svg).finish();
}

double exchanged_bytes(const std::vector<TraceTrafficPoint>& traffic) {
  double bytes = 0;
  for (std::size_t i = 0; i + 1 < traffic.size(); ++i)
    bytes += (traffic[i].sent_Bps + traffic[i].received_Bps) *
             (rounded_s(traffic[i + 1].time_s) - rounded_s(traffic[i].time_s));
  return bytes;
}

std::string traffic_chart(const TraceProcess& host, double end_s) {
  const Axis time({"time", time_unit(end_s)}, 0, end_s, chart_left, step_chart_width - 14);
  const auto columns = static_cast<std::size_t>(step_chart_width - 14 - chart_left);
  const double column_s = end_s / static_cast<double>(columns);
  std::vector<Exchanged> means;
  double most_Bps = 0;
  std::size_t next = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const double from_s = column_s * static_cast<double>(c);
    while (next < host.traffic.size() && rounded_s(host.traffic[next].time_s) <= from_s) ++next;
    Exchanged mean = exchanged_within(host.traffic, next, from_s, from_s + column_s);
    mean.sent_bytes /= column_s, mean.received_bytes /= column_s;
    most_Bps = std::max({most_Bps, mean.sent_bytes, mean.received_bytes});
    means.push_back(mean);
  }
  const Axis rate({"bandwidth in use", {1e9 / 8, "Gbit/s"}}, 0, most_Bps, chart_bottom, chart_top);
  Svg svg(step_chart_width, chart_bottom + time_axis_height, fmt::format("{} network over a step", host.name),
          {chart_left, step_chart_width - 14, time.high(), time_unit(end_s).size});
  draw_value_axis(svg, rate);
  double legend = chart_left;
  for (const auto& [name, style, member] : {std::tuple{"sent", "c0", &Exchanged::sent_bytes},
                                            std::tuple{"received", "c1", &Exchanged::received_bytes}}) {
    svg.rect(legend, 5, 11, 11, fmt::format("bar {}", style));
    svg.text(legend + 16, 15, name, "label");
    legend += 34 + text_width(name);
    std::string height = px(rate.at(means.front().*member));
    std::string path = fmt::format("M{} {}", px(time.at(0)), height);
    for (std::size_t c = 1; c < columns; ++c) {
      const std::string next_height = px(rate.at(means[c].*member));
      if (next_height == height) continue;
      path += fmt::format("H{}V{}", px(time.at(column_s * static_cast<double>(c))), next_height);
      height = next_height;
    }
    svg.path(path + fmt::format("H{}", px(time.at(end_s))), fmt::format("line {} over-time", style));
  }
  draw_time_axis(svg, time, chart_left, chart_bottom, chart_bottom);
  return std::move(svg).finish();
}

}  // namespace convoy::results
