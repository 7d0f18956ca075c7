// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace convoy {

/// Counts of the steps from the present one on, as far ahead as anything has been counted: what a rank of a
/// collective keeps of its steps, however many they are.
class StepWindow {
 public:
  /// Of the step so many after the present one.
  std::int32_t& ahead(std::uint32_t steps) {
    if (steps >= counts_.size()) widen(steps);
    return counts_[(first_ + steps) & (counts_.size() - 1)];
  }
  /// The next step is the present one.
  void next() {
    counts_[first_] = 0;
    first_ = (first_ + 1) & static_cast<std::uint32_t>(counts_.size() - 1);
  }

 private:
  void widen(std::uint32_t steps) {
    std::size_t size = 2;
    while (size <= steps) size *= 2;
    std::vector<std::int32_t> wider(size, 0);
    for (std::size_t i = 0; i < counts_.size(); ++i) wider[i] = counts_[(first_ + i) & (counts_.size() - 1)];
    counts_ = std::move(wider);
    first_ = 0;
  }

  std::vector<std::int32_t> counts_;  ///< a ring; its size is a power of two, or 0
  std::uint32_t first_ = 0;
};

}  // namespace convoy
