// SPDX-License-Identifier: MIT
#include "sim/page/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/page/svg.h"
#include "sim/page/text.h"

namespace convoy::inline page {
namespace {

constexpr double row_height = 22, bar_height = 14, legend_height = 26, axis_height = 44;
constexpr std::size_t longest_bar_label = 56;

double length(const BarRow& row) { return std::accumulate(row.parts.begin(), row.parts.end(), 0.0); }

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart)
      : chart_(chart),
        height_(legend_height + row_height * static_cast<double>(chart.rows.size()) + axis_height),
        left_(widest(&BarRow::label) + 12),
        right_(chart.width - widest(&BarRow::text) - 14),
        axis_(chart.x, 0, largest(), left_, right_) {}

  std::string draw() {
    Svg svg(chart_.width, height_, chart_.label);
    draw_legend(svg);
    draw_axis(svg);
    double y = legend_height;
    for (const BarRow& row : chart_.rows) {
      draw_row(svg, row, y);
      y += row_height;
    }
    return std::move(svg).finish();
  }

 private:
  double widest(std::string BarRow::*text) const {
    double width = 0;
    for (const BarRow& row : chart_.rows)
      if (!row.heading) width = std::max(width, text_width(shortened(row.*text, longest_bar_label)));
    return width;
  }
  double largest() const {
    double value = 0;
    for (const BarRow& row : chart_.rows) value = std::max({value, length(row), row.mark});
    return value;
  }
  double bottom() const { return height_ - axis_height; }

  void draw_legend(Svg& svg) const {
    if (chart_.parts.size() < 2 && chart_.mark_name.empty()) return;
    double x = left_;
    for (const BarPart& part : chart_.parts) {
      svg.rect(x, 5, 11, 11, "bar " + part.style);
      svg.text(x + 16, 15, part.name, "label");
      x += 16 + text_width(part.name) + 18;
    }
    if (chart_.mark_name.empty()) return;
    svg.line(x + 5, 3, x + 5, 18, "limit");
    svg.text(x + 13, 15, chart_.mark_name, "label");
  }

  void draw_axis(Svg& svg) const {
    for (const Tick& tick : axis_.ticks()) {
      const double x = axis_.at(tick.value);
      svg.line(x, legend_height - 2, x, bottom() + 4, "grid");
      svg.text(x, bottom() + 17, tick.text, "tick", Anchor::middle);
    }
    svg.line(left_, bottom(), right_, bottom(), "axis");
    svg.text((left_ + right_) / 2, height_ - 8, axis_.title(), "title", Anchor::middle);
  }

  void draw_row(Svg& svg, const BarRow& row, double y) const {
    const double middle = y + row_height / 2;
    if (row.heading) return svg.text(left_, middle + 6, row.label, "heading");
    svg.text(left_ - 8, middle + 4, shortened(row.label, longest_bar_label), "label", Anchor::end);
    double from = 0;
    for (std::size_t p = 0; p < row.parts.size(); ++p) {
      if (row.parts[p] <= 0) continue;
      const double x1 = axis_.at(from), x2 = axis_.at(from + row.parts[p]);
      from += row.parts[p];
      svg.rect(x1, middle - bar_height / 2, x2 - x1, bar_height, "bar " + chart_.parts[p].style);
    }
    if (row.mark > 0)
      svg.line(axis_.at(row.mark), middle - bar_height / 2 - 3, axis_.at(row.mark),
               middle + bar_height / 2 + 3, "limit");
    svg.text(std::max(axis_.at(from), row.mark > 0 ? axis_.at(row.mark) : left_) + 7, middle + 4, row.text,
             "value");
  }

  const BarChart& chart_;
  double height_, left_, right_;
  Axis axis_;
};

}  // namespace

std::string draw(const BarChart& chart) { return BarDrawing(chart).draw(); }

}  // namespace convoy::page
