// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>

namespace convoy::inline replays {

/// Counts the steps of several items that each advance one step at a time, and gives the smallest count in
/// constant time.
class StepCounts {
 public:
  /// Adds an item. @pre before any step
  void add(std::uint64_t steps) {
    if (things_.empty()) first_ = steps;
    while (steps < first_) things_.push_front(0), --first_;
    if (steps - first_ >= things_.size()) things_.resize(steps - first_ + 1, 0);
    ++things_[steps - first_];
  }
  /// An item that had done `steps` steps has done one more.
  void step(std::uint64_t steps) {
    if (steps + 1 - first_ >= things_.size()) things_.push_back(0);
    ++things_[steps + 1 - first_];
    --things_[steps - first_];
    while (things_.front() == 0) things_.pop_front(), ++first_;
  }
  std::uint64_t fewest() const { return first_; }

 private:
  std::uint64_t first_ = 0;
  std::deque<std::uint32_t> things_;  ///< by steps beyond `first_`
};

}  // namespace convoy::replays
