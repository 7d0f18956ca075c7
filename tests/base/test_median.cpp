// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/base/median.h"

using namespace convoy;

TEST_CASE("a median has as many values below as above, and lies halfway between the two middle ones") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({4, 1}) == 2.5);
  CHECK(median({5, 1, 2}) == 2);
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<double> values(1 + random() % 12);
    for (double& value : values) value = static_cast<double>(random() % 10);
    const double middle = median(values);
    const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < middle; });
    const auto above = std::count_if(values.begin(), values.end(), [&](double v) { return v > middle; });
    CHECK(2 * below <= static_cast<std::ptrdiff_t>(values.size()));
    CHECK(2 * above <= static_cast<std::ptrdiff_t>(values.size()));
    std::vector<double> mirrored;
    for (const double value : values) mirrored.push_back(-value);
    CHECK(median(mirrored) == -middle);  // neither the upper nor the lower of two
  }
}
