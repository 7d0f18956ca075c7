// SPDX-License-Identifier: MIT
// When the mean step of an asynchronous service is known.
#include <doctest/doctest.h>

#include <random>

#include "sim/replay/steady_state.h"

using namespace convoy;

namespace {

struct Measured {
  int steps = 0;
  double step_s = 0;
};

/// One client computes 10 ms a step, in the mean of a spread of 25 %, and then waits for `least_s` to
/// `most_s`.
Measured measured(double least_s, double most_s) {
  Service service;
  service.clients = {{0, 1.0, 0.0, 0}};
  service.exchanges.resize(1);
  service.compute_spread = 0.25;
  Folding folding;
  folding.endpoint_class = {0};
  folding.endpoints = {0};
  SteadyState state(service, folding);
  DeviceClock clock;
  std::mt19937 random(1);
  Measured result;
  double now_s = 0;
  while (!state.is_over() && result.steps < 100'000) {
    state.step_begins(0, now_s, clock, 0);
    clock.compute_begins(now_s);
    now_s += 10e-3 * state.next_stretch(0);
    clock.compute_ends(now_s);
    now_s += std::uniform_real_distribution<double>(least_s, most_s)(random);
    state.step_ends(0, now_s, clock, 0);
    ++result.steps;
  }
  result.step_s = state.step_time_s(1);
  return result;
}

}  // namespace

TEST_CASE("a measurement is over once the mean is known to 1 %, and not before") {
  // Waits alone are uncertain: what the client computes is known. 8 blocks of 8 steps follow 4 of warm-up,
  // and 64 steps are enough to meet everybody: (11 ms / (0.25 / sqrt(3) 10 ms))^2 = 58.
  const Measured sure = measured(0.9e-3, 1.1e-3);
  CHECK(sure.steps == 4 + 64);
  CHECK(sure.step_s == doctest::Approx(11e-3).epsilon(1e-3));
  // 0 to 20 ms: a standard deviation of 5.8 of 20 ms. 1 % is 2.45 of them over sqrt(n): n of about 5,000
  // steps; looks are at 64, 128, 256, ... of them.
  const Measured unsure = measured(0, 20e-3);
  CHECK(unsure.steps >= 4 + 1024);
  CHECK(unsure.steps <= 4 + 16'384);
  CHECK(unsure.step_s == doctest::Approx(20e-3).epsilon(0.015));
}
