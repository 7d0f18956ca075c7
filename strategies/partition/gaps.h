// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace convoy::inline partition {

/// The free time of one part: where an operation could still be put in. Gaps lie in blocks, in order, that
/// know the longest of theirs, so that those that are all too short are passed by at once.
class Gaps {
 public:
  /// Earliest start >= ready_us of a gap of length_us. @param most looks at so many gaps, then takes the last
  double earliest(double ready_us, double length_us,
                  std::size_t most = std::numeric_limits<std::size_t>::max()) const {
    std::size_t first = block_of(ready_us);
    std::size_t i = place_in(blocks_[first], ready_us);
    for (std::size_t b = first; b < blocks_.size(); ++b, i = 0) {
      const Block& block = blocks_[b];
      if (block.longest_us + rounding_us < length_us) {
        if (block.gaps.size() - i >= most) break;
        most -= block.gaps.size() - i;
        continue;
      }
      for (; i < block.gaps.size(); ++i) {
        const double start = std::max(block.gaps[i].start_us, ready_us);
        if (start + length_us <= block.gaps[i].end_us) return start;
        if (--most == 0) return after_all(ready_us);
      }
    }
    return after_all(ready_us);
  }

  /// Takes [start, end), which lies in a gap, out of it. What takes no time parts the gap: nothing can run
  /// across it.
  void take(double start_us, double end_us) {
    const std::size_t b = block_of(start_us);
    Block& block = blocks_[b];
    const auto gap = block.gaps.begin() + static_cast<std::ptrdiff_t>(place_in(block, start_us));
    const Gap whole = *gap;
    if (start_us == whole.start_us && end_us == start_us) return;
    const bool left = start_us > whole.start_us, right = end_us < whole.end_us;
    if (left) gap->end_us = start_us;
    if (left && right)
      block.gaps.insert(gap + 1, {end_us, whole.end_us});
    else if (right)
      gap->start_us = end_us;
    else if (!left)
      block.gaps.erase(gap);
    if (block.gaps.empty())
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
    else if (block.gaps.size() > most_in_block)
      split(b);
    else
      measure(block);
  }

 private:
  struct Gap {
    double start_us, end_us;
  };
  struct Block {
    std::vector<Gap> gaps;  ///< never empty
    double longest_us;
  };
  static constexpr std::size_t most_in_block = 128;
  static constexpr double rounding_us = 1e-6;  ///< that a gap's end less its start may be off by

  double after_all(double ready_us) const { return std::max(blocks_.back().gaps.back().start_us, ready_us); }
  /// The last block that begins at `time_us` or before, or the first.
  std::size_t block_of(double time_us) const {
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), time_us,
                                        [](double t, const Block& b) { return t < b.gaps.front().start_us; });
    return after == blocks_.begin() ? 0 : static_cast<std::size_t>(after - blocks_.begin()) - 1;
  }
  static std::size_t place_in(const Block& block, double time_us) {
    const auto after = std::upper_bound(block.gaps.begin(), block.gaps.end(), time_us,
                                        [](double t, const Gap& gap) { return t < gap.start_us; });
    return after == block.gaps.begin() ? 0 : static_cast<std::size_t>(after - block.gaps.begin()) - 1;
  }
  static void measure(Block& block) {
    block.longest_us = 0;
    for (const Gap& gap : block.gaps)
      block.longest_us = std::max(block.longest_us, gap.end_us - gap.start_us);
  }
  void split(std::size_t b) {
    Block upper{{blocks_[b].gaps.begin() + most_in_block / 2, blocks_[b].gaps.end()}, 0};
    blocks_[b].gaps.resize(most_in_block / 2);
    measure(blocks_[b]);
    measure(upper);
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(b) + 1, std::move(upper));
  }

  std::vector<Block> blocks_{
      {{{0, std::numeric_limits<double>::infinity()}}, std::numeric_limits<double>::infinity()}};
};

}  // namespace convoy::partition
