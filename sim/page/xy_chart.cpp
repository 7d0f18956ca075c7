// SPDX-License-Identifier: MIT
#include "sim/page/xy_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/page/svg.h"
#include "sim/page/text.h"

namespace convoy::inline page {
namespace {

constexpr double left = 64, top = 14, bottom = 46, right = 16;
constexpr double label_height = 15;
constexpr std::size_t longest_series_label = 46;

/// Neighbouring series differ in more than their colour.
std::size_t shape(std::size_t style) { return style + style / 8; }

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// A label at the end of its line.
struct EndLabel {
  std::string text, title;
  double x, y;     ///< of the line's end
  double label_y;  ///< of its own middle
  std::size_t style;
};

class XyDrawing {
 public:
  explicit XyDrawing(const XyChart& chart)
      : chart_(chart),
        with_labels_(chart.labels && chart.series.size() > 1),
        height_(with_labels_
                    ? std::max(chart.height,
                               top + bottom + label_height * static_cast<double>(chart.series.size()))
                    : chart.height),
        x_(axis(chart.x, &XyPoint::x, left, chart.width - right)),
        y_(axis(chart.y, &XyPoint::y, height_ - bottom, top)) {}

  std::string draw() {
    std::vector<EndLabel> labels = end_labels();
    double label_width = 0;
    for (const EndLabel& label : labels) label_width = std::max(label_width, text_width(label.text) + 30);
    Svg svg(chart_.width + label_width, height_, chart_.label);
    draw_grid(svg);
    draw_ideal(svg);
    for (const XySeries& series : chart_.series) draw_ranges(svg, series);
    for (const XySeries& series : chart_.series) draw_series(svg, series);
    for (const EndLabel& label : labels) draw_label(svg, label);
    draw_notes(svg);
    return std::move(svg).finish();
  }

 private:
  Axis axis(const AxisRequest& request, double XyPoint::*coordinate, double from, double to) const {
    Range range;
    for (const XySeries& series : chart_.series)
      for (const XyPoint& point : series.points) range.add(point.*coordinate);
    if (coordinate == &XyPoint::y && chart_.named)
      for (const XySeries& series : chart_.series)
        for (const XyPoint& point : series.points)
          if (point.range)
            for (const double end : *point.range) range.add(end);
    if (range.low > range.high) range = {0, 1};
    return {request, range.low, range.high, from, to};
  }

  double plot_right() const { return chart_.width - right; }
  double plot_bottom() const { return height_ - bottom; }

  void draw_grid(Svg& svg) const {
    for (const Tick& tick : y_.ticks()) {
      svg.line(left, y_.at(tick.value), plot_right(), y_.at(tick.value), "grid");
      svg.text(left - 7, y_.at(tick.value) + 4, tick.text, "tick", Anchor::end);
    }
    for (const Tick& tick : x_.ticks()) {
      svg.line(x_.at(tick.value), plot_bottom(), x_.at(tick.value), plot_bottom() + 4, "axis");
      svg.text(x_.at(tick.value), plot_bottom() + 17, tick.text, "tick", Anchor::middle);
    }
    svg.line(left, plot_bottom(), plot_right(), plot_bottom(), "axis");
    svg.text((left + plot_right()) / 2, height_ - 8, x_.title() + (x_.log() ? ", log scale" : ""), "title",
             Anchor::middle);
    svg.vertical_text(14, (top + plot_bottom()) / 2, y_.title() + (y_.log() ? ", log scale" : ""), "title");
  }

  std::string path_of(const std::vector<XyPoint>& points) const {
    std::string d;
    for (const XyPoint& point : points)
      d += fmt::format("{}{} {}", d.empty() ? "M" : "L", px(x_.at(point.x)), px(y_.at(point.y)));
    return d;
  }

  /// The pieces of the line that lie within the plot: a piece ends where it would leave the plot. The middle
  /// one is labelled.
  void draw_ideal(Svg& svg) const {
    for (std::size_t i = 1; i < chart_.ideal.size(); ++i) {
      const XyPoint a = chart_.ideal[i - 1], b = chart_.ideal[i];
      double x1 = x_.at(a.x), y1 = y_.at(a.y), x2 = x_.at(b.x), y2 = y_.at(b.y);
      if (y2 < top && y1 > y2) x2 = x1 + (x2 - x1) * (y1 - top) / (y1 - y2), y2 = top;
      svg.line(x1, y1, x2, y2, "ideal");
      if (i != chart_.ideal.size() / 2) continue;
      // Above the line: to the left of a rising line, to the right of a falling one.
      const bool falls = y2 > y1;
      svg.text(x1 + 0.6 * (x2 - x1) + (falls ? 8 : -8), y1 + 0.6 * (y2 - y1) - 8, chart_.ideal_label, "note",
               falls ? Anchor::start : Anchor::end);
    }
  }

  void draw_ranges(Svg& svg, const XySeries& series) const {
    if (!chart_.named) return;
    for (const XyPoint& point : series.points)
      if (point.range)
        svg.line(x_.at(point.x), y_.at((*point.range)[0]), x_.at(point.x), y_.at((*point.range)[1]),
                 "range " + colour_class(series.style));
  }

  void draw_series(Svg& svg, const XySeries& series) const {
    const std::string colour = colour_class(series.style);
    if (series.line && series.points.size() > 1)
      svg.path(path_of(series.points), fmt::format("line {} {}", colour, dash_class(series.style)));
    if (!series.markers) return;
    if (!chart_.named) {
      std::vector<std::pair<double, double>> places;
      for (const XyPoint& point : series.points) places.emplace_back(x_.at(point.x), y_.at(point.y));
      return svg.markers(shape(series.style), places, "mark many " + colour);
    }
    for (const XyPoint& point : series.points)
      svg.marker(shape(series.style), x_.at(point.x), y_.at(point.y), "mark " + colour, point.title);
  }

  std::vector<EndLabel> end_labels() const {
    std::vector<EndLabel> labels;
    if (!with_labels_) return labels;
    for (const XySeries& series : chart_.series) {
      if (series.points.empty()) continue;
      const XyPoint& end = series.points.back();
      const double y = y_.at(end.y);
      labels.push_back(
          {shortened(series.label, longest_series_label), series.label, x_.at(end.x), y, y, series.style});
    }
    std::stable_sort(labels.begin(), labels.end(),
                     [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
    // First downwards, each label below the one before; then upwards, so that the last one is still within
    // the plot.
    double free = top;
    for (EndLabel& label : labels) {
      label.label_y = std::max(label.y, free);
      free = label.label_y + label_height;
    }
    double limit = plot_bottom();
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      label->label_y = std::min(label->label_y, limit);
      limit = label->label_y - label_height;
    }
    return labels;
  }

  void draw_label(Svg& svg, const EndLabel& label) const {
    const double x = plot_right() + 18;
    svg.line(label.x + 6, label.y, x - 8, label.label_y, "leader");
    svg.marker(shape(label.style), x, label.label_y, "mark " + colour_class(label.style));
    svg.text(x + 9, label.label_y + 4, label.text, "label");
  }

  void draw_notes(Svg& svg) const {
    struct Box {
      double left, right, top, bottom;
    };
    std::vector<Box> taken;
    for (const XyNote& note : chart_.notes) {
      const double half = text_width(note.text, 11) / 2, y = y_.at(note.y) - 8;
      const double x = std::clamp(x_.at(note.x), left + half, std::max(left + half, plot_right() - half));
      const Box box{x - half - 3, x + half + 3, y - 11, y + 2};
      if (std::any_of(taken.begin(), taken.end(), [&](const Box& other) {
            return box.left < other.right && other.left < box.right && box.top < other.bottom &&
                   other.top < box.bottom;
          }))
        continue;
      taken.push_back(box);
      svg.text(x, y, note.text, "note", Anchor::middle);
    }
  }

  const XyChart& chart_;
  bool with_labels_;
  double height_;
  Axis x_, y_;
};

}  // namespace

std::string draw(const XyChart& chart) { return XyDrawing(chart).draw(); }

std::string colour_class(std::size_t style) { return fmt::format("c{}", style % 8); }

std::string dash_class(std::size_t style) { return fmt::format("d{}", style / 8 % 4); }

bool wants_log(double lowest, double highest, double ratio) {
  return lowest > 0 && highest / lowest >= ratio;
}

}  // namespace convoy::page
