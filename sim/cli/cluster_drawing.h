// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline cli {

/// A box of a cluster's picture: a device, a cable, or a switch that limits nothing.
struct DrawnPlace {
  std::string name, detail;
  bool device = false;
  std::uint32_t host = Link::no_host;  ///< of a device, and as Link::host
  std::size_t layer = 0;               ///< 0: devices; cables by their distance from the nearest device
  std::size_t row = 0;                 ///< of the picture, from below
  double rank = 0;  ///< in its layer from left to right, all rows one after the other: 0 to 1
  double x = 0;     ///< of its middle, in pixels
};

/// A cable that joins two devices and nothing else.
struct DrawnCable {
  std::size_t a, b;
  std::string text;
};

/// Where a line goes through a row that its ends are not in: straight up, between two boxes.
struct Passage {
  std::size_t row;
  double x;
};

/// A line between two places.
struct DrawnLine {
  std::size_t from, to;           ///< the lower row first
  std::vector<Passage> passages;  ///< from below
  bool over = false;              ///< ends in one row with boxes between them: goes over these
};

struct ClusterDrawing {
  static constexpr double cell_width = 130, box_width = 110, cell_height = 90, box_height = 34;

  std::vector<DrawnPlace> places;  ///< devices first
  std::vector<DrawnCable> cables;
  std::set<std::pair<std::size_t, std::size_t>> joins;  ///< the smaller number first
  std::string note;                                     ///< "" where all devices are drawn
  double width = 0;                                     ///< in pixels, set by lay_out
  std::size_t rows = 0;                                 ///< set by lay_out
};

/// Devices of the machine that are drawn: the first ones.
std::size_t drawn_device_count(const Machine& machine);

/// Devices, and the cables that ways between any two of them run through, joined in the order of the ways.
/// Three or more cables of a layer that are all joined to one another meet in a switch.
ClusterDrawing drawing_of(const Machine& machine);

/// Gives the places of each layer their rows, at most 16 in each, evenly over the width, in the order of the
/// mean of what they are joined to below.
void lay_out(ClusterDrawing& drawing);

/// A line for each join. None crosses a box: it passes rows between the boxes, each line in a lane of its
/// own. @pre lay_out has been called
std::vector<DrawnLine> lines_of(const ClusterDrawing& drawing);

}  // namespace convoy::cli
