// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/page/axis.h"

namespace convoy::inline page {

struct XyPoint {
  double x, y;
  std::string title = {};  ///< shown under the pointer, unless the chart has too many
  std::optional<std::array<double, 2>> range =
      {};  ///< of y: a thin line behind the point, unless the chart has too many
};

/// Points over x, joined by a line.
struct XySeries {
  std::string label;
  std::vector<XyPoint> points;
  std::size_t style = 0;  ///< colour, dashes and marker; each number looks different, up to 32
  bool line = true, markers = true;
};

/// A word at a place in the plot, left out if it would cover another one.
struct XyNote {
  double x, y;
  std::string text;
};

struct XyChart {
  std::string label;  ///< what it shows, for people who cannot see it
  AxisRequest x, y;
  std::vector<XySeries> series;
  std::vector<XyPoint> ideal = {};  ///< a dashed line behind all others; does not widen the axes
  std::string ideal_label = {};
  std::vector<XyNote> notes = {};
  double width = 460, height = 300;  ///< of the plot with its axes; labels are added to the width
  bool labels = true;                ///< at the ends of the lines, if there are several series
  bool named = true;                 ///< each point is an element that shows its title; else a series is one
};

/// As SVG. Labels at the ends of lines are moved apart, and the chart is made higher if they need it.
std::string draw(const XyChart& chart);

/// The classes of the style sheet for series number `style`: "c3", "d1".
std::string colour_class(std::size_t style);
std::string dash_class(std::size_t style);

/// Whether values that are this far apart are better shown on a logarithmic axis.
bool wants_log(double lowest, double highest, double ratio);

}  // namespace convoy::page
