// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace convoy::inline partition {

/// Sums over ranges of positions whose values change one at a time, of several values a position: all of them
/// in O(values log n) (P. M. Fenwick, 1994). The values of a position lie side by side, so that reading all
/// of them touches as little memory as reading one.
class FenwickTree {
 public:
  FenwickTree(std::size_t positions, std::size_t values)
      : positions_(positions), values_(values), sums_((positions + 1) * values) {}

  void add(std::size_t position, std::size_t value, double amount) {
    for (std::size_t i = position + 1; i <= positions_; i += i & (~i + 1))
      sums_[i * values_ + value] += amount;
  }

  /// Of each value the sum over positions [from, to); 0 where the range is empty.
  void sum(std::size_t from, std::size_t to, std::vector<double>& result) {
    result.assign(values_, 0);
    if (from >= to) return;
    before_from_.assign(values_, 0);
    add_before(to, result);
    add_before(from, before_from_);
    for (std::size_t value = 0; value < values_; ++value) result[value] -= before_from_[value];
  }

 private:
  void add_before(std::size_t position, std::vector<double>& sums) const {
    for (std::size_t i = position; i > 0; i -= i & (~i + 1))
      for (std::size_t value = 0; value < values_; ++value) sums[value] += sums_[i * values_ + value];
  }

  std::size_t positions_, values_;
  std::vector<double> sums_;
  std::vector<double> before_from_;
};

}  // namespace convoy::partition
