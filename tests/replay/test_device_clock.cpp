// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/replay/busy_clock.h"

using namespace convoy;

TEST_CASE("a device's clock: computing and messages at random moments, against a count of short slices") {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    constexpr int slices = 1000;
    std::vector<int> messages(slices + 1, 0);
    std::vector<char> computing(slices + 1, 0);
    std::uniform_int_distribution<int> moment(0, slices - 1);
    for (int m = 0; m < 6; ++m) {
      const auto [from, to] = std::minmax({moment(random), moment(random)});
      for (int s = from; s < to; ++s) ++messages[static_cast<std::size_t>(s)];
    }
    for (int task = 0; task < 5; ++task) {
      const auto [from, to] = std::minmax({moment(random), moment(random)});
      for (int s = from; s < to; ++s) computing[static_cast<std::size_t>(s)] = 1;
    }
    DeviceClock clock;
    double exposed = 0, hidden = 0, slack = 0, computed = 0;
    bool begun = false, busy = false;
    int under_way = 0;
    for (std::size_t s = 0; s <= slices; ++s) {
      const auto now = static_cast<double>(s);
      while (under_way < messages[s]) clock.message_begins(now), ++under_way;
      while (under_way > messages[s]) clock.message_ends(now), --under_way;
      if (busy != (computing[s] != 0)) busy ? clock.compute_ends(now) : clock.compute_begins(now);
      busy = computing[s] != 0;
      begun = begun || messages[s] > 0;
      if (s == slices) break;
      computed += busy;
      exposed += !busy && messages[s] > 0;
      hidden += busy && messages[s] > 0;
      slack += busy && begun && messages[s] == 0;
    }
    clock.advance(slices);
    CHECK(clock.times().compute_s == computed);
    CHECK(clock.times().comm.exposed_s == exposed);
    CHECK(clock.times().comm.hidden_s == hidden);
    CHECK(clock.times().comm.slack_s == slack);
  }
}
