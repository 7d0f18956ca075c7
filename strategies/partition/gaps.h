// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

namespace convoy {

/// The free time of one part: where an operation could still be put in.
class Gaps {
 public:
  /// Earliest start >= ready_us of a gap of length_us.
  double earliest(double ready_us, double length_us) const {
    auto gap = free_.upper_bound(ready_us);
    if (gap != free_.begin()) --gap;
    while (std::max(gap->first, ready_us) + length_us > gap->second) ++gap;
    return std::max(gap->first, ready_us);
  }
  /// Takes [start, end), which lies in a gap, out of it.
  void take(double start_us, double end_us) {
    if (start_us == end_us) return;
    const auto gap = std::prev(free_.upper_bound(start_us));
    const auto [from, to] = *gap;
    if (from == start_us)
      free_.erase(gap);
    else
      gap->second = start_us;
    if (end_us < to) free_.emplace(end_us, to);
  }

 private:
  std::map<double, double> free_{{0, std::numeric_limits<double>::infinity()}};  ///< start -> end
};

}  // namespace convoy
