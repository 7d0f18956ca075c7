// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "strategies/partition/gaps.h"

using namespace convoy;

namespace {

/// Gaps as a list that is gone through from its beginning.
class PlainGaps {
 public:
  double earliest(double ready, double length, std::size_t most) const {
    std::size_t i = 0;
    while (i + 1 < list_.size() && list_[i + 1].first <= ready) ++i;
    for (; most > 0 && i < list_.size(); ++i, --most)
      if (std::max(list_[i].first, ready) + length <= list_[i].second) return std::max(list_[i].first, ready);
    return std::max(list_.back().first, ready);
  }
  void take(double start, double end) {
    std::vector<std::pair<double, double>> result;
    for (const auto& [from, to] : list_) {
      const bool here = from <= start && end <= to && !(start == from && start == end);
      if (!here || done(start, from)) {
        result.emplace_back(from, to);
        continue;
      }
      if (start > from) result.emplace_back(from, start);
      if (end < to) result.emplace_back(end, to);
    }
    list_ = std::move(result);
  }

 private:
  /// Of two gaps that meet where an operation takes no time, it is in the later one: whose beginning it is.
  bool done(double start, double from) const {
    return std::any_of(list_.begin(), list_.end(),
                       [&](const auto& gap) { return gap.first <= start && gap.first > from; });
  }
  std::vector<std::pair<double, double>> list_{{0, std::numeric_limits<double>::infinity()}};
};

}  // namespace

TEST_CASE("gaps in blocks are those of a plain list, for thousands of operations") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Gaps gaps;
    PlainGaps plain;
    for (int i = 0; i < 1500; ++i) {
      // Whole numbers, some of them 0, and long ones among short ones: there are ties, and gaps too short.
      const double ready = static_cast<double>(random() % 20'000);
      const double length = static_cast<double>(random() % 10 == 0 ? random() % 200 : random() % 6);
      const std::size_t most = seed % 2 == 0 ? 100 : 1'000'000;
      const double start = gaps.earliest(ready, length, most);
      REQUIRE(start == plain.earliest(ready, length, most));
      gaps.take(start, start + length);
      plain.take(start, start + length);
    }
  }
}
