// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "sim/page/axis.h"
#include "sim/page/svg.h"
#include "sim/results/write_trace.h"

namespace convoy::inline results {

// Drawings over the time of one step.

inline constexpr double step_chart_width = 1080, time_axis_height = 44;  ///< pixels

/// Times rounded to nanoseconds, as they are in trace.json.
inline double rounded_s(double time_s) { return std::round(time_s * 1e9) * 1e-9; }

void draw_time_axis(Svg& svg, const Axis& axis, double left, double top, double bottom);

/// A device's memory over time, with the classes stacked.
std::string memory_chart(const TraceMemory& memory, double end_s);

/// Bytes that a host sends and receives in the step.
double exchanged_bytes(const std::vector<TraceTrafficPoint>& traffic);

/// Bandwidth in use at a host's network interface over time, sent and received: the mean over each pixel of
/// the drawing, so that the areas below the curves are the bytes.
std::string traffic_chart(const TraceProcess& host, double end_s);

}  // namespace convoy::results
