// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace convoy {

/// Sums over ranges of positions that change one at a time, both in O(log n) (P. M. Fenwick, 1994).
class FenwickTree {
 public:
  explicit FenwickTree(std::size_t size) : sums_(size + 1) {}
  void add(std::size_t position, double amount) {
    for (std::size_t i = position + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += amount;
  }
  /// Sum over positions [from, to); 0 where the range is empty.
  double sum(std::size_t from, std::size_t to) const { return from < to ? before(to) - before(from) : 0; }

 private:
  double before(std::size_t position) const {
    double sum = 0;
    for (std::size_t i = position; i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }
  std::vector<double> sums_;
};

}  // namespace convoy
