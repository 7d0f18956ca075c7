// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// Work that each part has within ranges of positions, while work is given to parts one position at a time.
/// Blocks of positions have their sums in a tree (P. M. Fenwick, A new data structure for cumulative frequency
/// tables, 1994), the sums of all parts side by side; what a range has of the blocks at its ends is added up
/// by position. A block has about as many positions as there are parts, so that the tree takes as much memory
/// as the positions, whatever the number of parts.
///
/// Work is rounded to what any sum of it is exact for, so that parts that have the same work are seen to have
/// the same: ties are broken by rule and not by rounding. Whole microseconds stay as they are.
class WindowLoads {
 public:
  /// @param work_us of each position
  WindowLoads(std::vector<double> work_us, Part parts)
      : parts_(parts),
        shift_(std::bit_width(std::max(parts, smallest_block) - 1)),
        work_us_(rounded(std::move(work_us))),
        part_(work_us_.size(), no_part),
        blocks_(work_us_.size() >> shift_),
        sums_us_((blocks_ + 1) * parts) {}

  double work_us(std::size_t position) const { return work_us_[position]; }

  /// The work of a position, which nobody had, is this part's from now on.
  void give(std::size_t position, Part part) {
    part_[position] = part;
    for (std::size_t i = (position >> shift_) + 1; i <= blocks_; i += i & (~i + 1))
      sums_us_[i * parts_ + part] += work_us_[position];
  }

  /// Of each part the work within positions [from, to).
  void sum(std::size_t from, std::size_t to, std::vector<double>& result_us) const {
    result_us.assign(parts_, 0);
    std::size_t first = (from + (std::size_t{1} << shift_) - 1) >> shift_,
                last = to >> shift_;  // whole blocks
    if (first > last) return add_each(from, to, result_us);
    add_each(from, first << shift_, result_us);
    add_each(last << shift_, to, result_us);
    // Sums over blocks [0, last) less those over [0, first), without what both have in common.
    for (; last > first; last &= last - 1)
      for (Part k = 0; k < parts_; ++k) result_us[k] += sums_us_[last * parts_ + k];
    for (; first > last; first &= first - 1)
      for (Part k = 0; k < parts_; ++k) result_us[k] -= sums_us_[first * parts_ + k];
  }

 private:
  static constexpr Part smallest_block = 8;

  /// To multiples of a power of two of which the sum of all has fewer than 2^53, as many as a double tells apart.
  static std::vector<double> rounded(std::vector<double> work_us) {
    const double all_us = std::accumulate(work_us.begin(), work_us.end(), 0.0);
    if (all_us == 0) return work_us;
    const double unit_us = std::ldexp(1, std::ilogb(all_us) - 51);
    for (double& work : work_us) work = std::nearbyint(work / unit_us) * unit_us;
    return work_us;
  }

  void add_each(std::size_t from, std::size_t to, std::vector<double>& result_us) const {
    for (std::size_t i = from; i < to; ++i)
      if (part_[i] != no_part) result_us[part_[i]] += work_us_[i];
  }

  Part parts_;
  int shift_;  ///< a block has 2^shift_ positions
  std::vector<double> work_us_;
  std::vector<Part> part_;
  std::size_t blocks_;
  std::vector<double> sums_us_;
};

}  // namespace convoy::partition
