// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/max_min.h"

namespace convoy::inline replays {

/// Flows that begin at one moment, while nothing else uses their links, in classes of flows that end at one moment.
struct RoundClasses {
  std::vector<std::uint32_t> class_of;       ///< by flow
  std::vector<double> bytes;                 ///< by class
  std::vector<std::vector<LinkUse>> routes;  ///< by class; LinkUse::link is a class of links
  std::vector<double> link_bandwidth_Bps;    ///< by class of links
};

/// Flows of a class carry as many bytes over links of equal classes; links of a class have equal bandwidth and are
/// crossed by equally many flows of every class. These are the coarsest such classes, and they say of one round what
/// Folding says of a plan: devices that are different there, for their places in a ring, may be alike in a round in
/// which all of them send to all others. Classes are distinguished by 64-bit hashes.
/// @param routes by flow; LinkUse::link is an index into link_bandwidth_Bps
RoundClasses round_classes(std::span<const double> bytes, std::span<const std::span<const LinkUse>> routes,
                           std::span<const double> link_bandwidth_Bps);

}  // namespace convoy::replays
