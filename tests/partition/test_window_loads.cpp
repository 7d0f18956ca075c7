// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "strategies/partition/window_loads.h"

using namespace convoy;

TEST_CASE("loads of windows are the sums of what parts were given in them [law]") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    const std::size_t positions = 1 + below(300);
    const auto parts = static_cast<Part>(1 + below(20));
    const double whole_or_third = seed % 2 == 0 ? 1 : 3;
    std::vector<double> work_us;
    for (std::size_t i = 0; i < positions; ++i)
      work_us.push_back(static_cast<double>(below(20)) / whole_or_third);
    std::vector<Part> part_of(positions, no_part);
    WindowLoads loads(work_us, parts);
    for (std::size_t i = 0; i < positions; ++i) {
      REQUIRE(loads.work_us(i) == doctest::Approx(work_us[i]).epsilon(1e-12));
      if (whole_or_third == 1) REQUIRE(loads.work_us(i) == work_us[i]);
    }
    std::vector<double> found;
    for (int step = 0; step < 400; ++step) {
      const std::size_t position = below(positions);
      if (part_of[position] == no_part) {
        part_of[position] = static_cast<Part>(below(parts));
        loads.give(position, part_of[position]);
      }
      const std::size_t from = below(positions + 1), to = from + below(positions + 1 - from);
      std::vector<double> sums(parts);
      for (std::size_t i = from; i < to; ++i)
        if (part_of[i] != no_part) sums[part_of[i]] += loads.work_us(i);
      loads.sum(from, to, found);
      CAPTURE(from);
      CAPTURE(to);
      REQUIRE(found == sums);
    }
  }
}
