// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/replay/step_watch.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Ends of steps from the lengths between them.
std::vector<double> ends(const std::vector<double>& lengths_s) {
  std::vector<double> result{0};
  for (const double length_s : lengths_s) result.push_back(result.back() + length_s);
  return result;
}

double mean_s(const std::vector<double>& end_s) {
  const SteadyStretch stretch = steady_stretch(end_s);
  return (end_s[stretch.last] - end_s[stretch.first]) / static_cast<double>(stretch.steps());
}

}  // namespace

TEST_CASE("the steady stretch leaves out the steps that fill the pipeline") {
  const std::vector<double> end_s = ends({9, 7, 5, 3, 2, 2, 2, 2, 2, 2, 2, 2});
  const SteadyStretch stretch = steady_stretch(end_s);
  CHECK(stretch.first == 6);
  CHECK(stretch.last == 12);
  CHECK(mean_s(end_s) == 2);
}

TEST_CASE("steps that come in bursts are measured in whole bursts") {
  // Three at once every 6 s: 2 s a step. The second half has ten steps, of which nine are three bursts.
  const std::vector<double> end_s = ends({1, 4, 0, 6, 0, 0, 6, 0, 0, 6, 0, 0, 6, 0, 0, 6, 0, 0, 6, 0});
  const SteadyStretch stretch = steady_stretch(end_s);
  CHECK(stretch.last == 20);
  CHECK(stretch.steps() == 9);
  CHECK(mean_s(end_s) == 2);
}

TEST_CASE("two equal steps by chance are no period") {
  const std::vector<double> end_s = ends({1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 1, 1});
  CHECK(steady_stretch(end_s).steps() == 6);  // the second half as it is
  CHECK(mean_s(end_s) == 2);
}

TEST_CASE("a difference of rounding is none") {
  CHECK(steady_stretch(ends({1, 1, 1, 1, 1 + 1e-9, 1, 1 - 1e-9, 1})).steps() == 4);
  CHECK(mean_s(ends({1, 1, 1, 1, 1.01, 1, 1, 1})) == approx(4.01 / 4).epsilon(1e-12));
}

TEST_CASE("two ends are one step") {
  const SteadyStretch stretch = steady_stretch({1, 4});
  CHECK(stretch.first == 0);
  CHECK(stretch.last == 1);
}
