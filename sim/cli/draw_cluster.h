// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/results/json_writer.h"
#include "topologies/machine.h"

namespace convoy::inline cli {

/// At most so many devices are drawn, and have a row in the matrix: those of the first hosts.
constexpr std::size_t max_drawn_devices = 64;

/// A machine as a drawing: devices, and the cables (with their bandwidth) that ways between any two of them
/// run through, joined in the order of the ways (cluster_drawing.h). For Graphviz.
void write_cluster_dot(std::ostream& out, const Machine& machine);

/// The same, laid out: devices at the bottom, cables above them by their distance from the nearest device.
/// No line crosses a box.
void write_cluster_svg(std::ostream& out, const Machine& machine);

/// Fields `matrix_devices`, `bandwidth_Bps` (of the narrowest link on the way from a row's device to a
/// column's, what one transfer alone gets; null for a device itself and where nothing limits) and
/// `latency_s`.
void write_bandwidth_matrix(JsonWriter& json, const Machine& machine);

}  // namespace convoy::cli
