// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "sim/replay/colours.h"

using namespace convoy;

TEST_CASE("colours are numbered in the order in which they are first looked up, however alike [law]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    // Of few colours, of many, and of some of which many share their lower or their upper half.
    const Colour lower = seed % 3 == 0 ? 0x7u : 0xffffffffu, upper = seed % 3 == 1 ? 0x7u : 0xffffffffu;
    const Colour few = seed % 2 == 0 ? 0xff : ~Colour{0};
    ColourTable table;
    std::map<Colour, std::uint32_t> known;
    for (int step = 0; step < 3000; ++step) {
      const Colour colour = random() & (lower | upper << 32) & few;
      if (step % 4 == 0) table.fetch(colour);
      const auto number = static_cast<std::uint32_t>(known.size());
      const auto [it, is_new] = known.emplace(colour, number);
      REQUIRE(table.number(colour) == it->second);
      REQUIRE(table.size() == known.size());
    }
  }
}
