// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/page/axis.h"

namespace convoy::inline page {

/// One part of the stacked bars, in a colour of the style sheet.
struct BarPart {
  std::string name, style;
};

struct BarRow {
  std::string label;
  std::vector<double> parts;  ///< one for each part of the chart
  std::string text = {};      ///< to the right of the bar
  double mark = 0;            ///< a limit, drawn as a tick across the bar; 0: none
  bool heading = false;       ///< its label only
};

/// Horizontal bars, each stacked of parts.
struct BarChart {
  std::string label;  ///< what it shows, for people who cannot see it
  AxisRequest x;
  std::vector<BarPart> parts;
  std::vector<BarRow> rows;
  std::string mark_name = {};
  double width = 1080;
};

std::string draw(const BarChart& chart);

}  // namespace convoy::page
