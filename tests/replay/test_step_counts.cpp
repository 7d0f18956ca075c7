// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/replay/step_counts.h"

using namespace convoy;

TEST_CASE("the fewest steps of many are those of a search through all of them") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    std::vector<std::uint64_t> steps(1 + below(8));
    StepCounts counts;
    for (std::uint64_t& it : steps) counts.add(it = below(5));
    CHECK(counts.fewest() == *std::min_element(steps.begin(), steps.end()));
    for (int k = 0; k < 200; ++k) {
      counts.step(steps[below(steps.size())]++);
      REQUIRE(counts.fewest() == *std::min_element(steps.begin(), steps.end()));
    }
  }
}
