// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/run/timeline.h"

using namespace convoy;

TEST_CASE("timeline: a restart stops the steps at once, for its pause") {
  // 20 steps of 2 s, 13 s of nothing
  const auto starts = lay_out({{0, 2, 0, 0}, {20, 1, 0, 13}, {60, 3, 0, 12}});
  CHECK(starts[1].step == 20);
  CHECK(starts[1].start_s == 20 * 2 + 13);
  CHECK(starts[2].step == 60);
  CHECK(starts[2].start_s == 53 + 40 * 1 + 12);
}

TEST_CASE("timeline: while newcomers get ready the old devices make whole steps") {
  // asked for after step 20; 11 s to get ready are six steps of 2 s; then 2.5 s of pause
  const auto starts = lay_out({{0, 2, 0, 0}, {20, 1, 11, 2.5}});
  CHECK(starts[1].step == 26);
  CHECK(starts[1].start_s == 26 * 2 + 2.5);
}

TEST_CASE("timeline: a preparation of exactly five steps takes five") {
  CHECK(lay_out({{0, 0.1, 0, 0}, {3, 1, 0.5, 0}})[1].step == 8);
}

TEST_CASE("timeline: a change asked for while the one before is under way waits for it") {
  const auto starts = lay_out({{0, 2, 0, 0}, {20, 1, 11, 2.5}, {22, 4, 3, 1}});
  CHECK(starts[2].step == 26 + 3);
  CHECK(starts[2].start_s == 54.5 + 3 * 1 + 1);
}

TEST_CASE("timeline: without work to do, preparing is waiting") {
  const auto starts = lay_out({{0, 0, 0, 0}, {20, 0, 11, 2}});
  CHECK(starts[1].step == 20);
  CHECK(starts[1].start_s == 13);
}

TEST_CASE("timeline: an epoch is as long as its steps with the pauses that fall between them") {
  // 20 steps of 2 s, a pause of 13 s, steps of 1 s: step 20 ends at 40, step 25 at 40 + 13 + 5.
  const std::vector<PhaseTimes> phases{{0, 2, 0, 0}, {20, 1, 0, 13}};
  const std::vector<PhaseStart> starts = lay_out(phases);
  CHECK(time_of_steps(phases, starts, 7.5) == 15);
  CHECK(time_of_steps(phases, starts, 20) == 40);
  CHECK(time_of_steps(phases, starts, 25) == 58);
  CHECK(time_of_steps(phases, starts, 1000) == 53 + 980);
}
