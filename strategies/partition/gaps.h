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
  /// Earliest start >= ready_us of a gap of length_us. @param most looks at so many gaps, then takes the last
  double earliest(double ready_us, double length_us, int most = std::numeric_limits<int>::max()) const {
    auto gap = free_.upper_bound(ready_us);
    if (gap != free_.begin()) --gap;
    while (std::max(gap->first, ready_us) + length_us > gap->second) {
      gap = --most > 0 ? std::next(gap) : std::prev(free_.end());
    }
    return std::max(gap->first, ready_us);
  }
  /// Takes [start, end), which lies in a gap, out of it. What takes no time parts the gap: nothing can run
  /// across it.
  void take(double start_us, double end_us) {
    const auto gap = std::prev(free_.upper_bound(start_us));
    const auto [from, to] = *gap;
    if (start_us > from)
      gap->second = start_us;
    else if (end_us > start_us)
      free_.erase(gap);
    if (end_us < to) free_.emplace(end_us, to);
  }

 private:
  std::map<double, double> free_{{0, std::numeric_limits<double>::infinity()}};  ///< start -> end
};

}  // namespace convoy
