// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "sim/replay/paced_compute.h"

using namespace convoy;

TEST_CASE("a task goes on at the rest of its rate while collectives are under way") {
  Engine engine({1.0}, 1, Contention::none);
  PacedCompute compute(engine, {0.25, 0.0});
  double end_s = 0, other_end_s = 0;
  compute.start(0, 10, [&] { end_s = engine.now_s(); });
  compute.start(1, 10, [&] { other_end_s = engine.now_s(); });
  for (const std::uint32_t c : {0u, 1u}) {
    engine.after(2, [&compute, c] { compute.collective_begins(c); });
    engine.after(4, [&compute, c] { compute.collective_begins(c); });  // two at a time take no more than one
    engine.after(5, [&compute, c] { compute.collective_ends(c); });
    engine.after(6, [&compute, c] { compute.collective_ends(c); });
  }
  CHECK(compute.computes(0));
  engine.run();
  CHECK(end_s == doctest::Approx(2 + 4 + (10 - 2 - 4 * 0.75)));
  CHECK(other_end_s == 10);
  CHECK_FALSE(compute.computes(0));
}

TEST_CASE("a task's work is the integral of its rate, whatever comes and goes") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const double taken = 0.5 * std::uniform_real_distribution<>(0, 1)(dice);
    Engine engine({1.0}, 1, Contention::none);
    PacedCompute compute(engine, {taken});
    std::uniform_real_distribution<> moment(0, 4);
    std::vector<std::pair<double, double>> collectives;
    for (int i = 0; i < 5; ++i) {
      const double begin_s = moment(dice), end_s = begin_s + moment(dice);
      collectives.emplace_back(begin_s, end_s);
      engine.after(begin_s, [&] { compute.collective_begins(0); });
      engine.after(end_s, [&] { compute.collective_ends(0); });
    }
    double end_s = 0;
    compute.start(0, 5, [&] { end_s = engine.now_s(); });
    engine.run();
    // Second implementation: small steps.
    double done_s = 0, now_s = 0;
    constexpr double step_s = 1e-4;
    for (; done_s < 5; now_s += step_s) {
      const bool busy = std::any_of(collectives.begin(), collectives.end(),
                                    [&](auto c) { return c.first <= now_s && now_s < c.second; });
      done_s += step_s * (busy ? 1 - taken : 1);
    }
    CHECK(end_s == doctest::Approx(now_s).epsilon(1e-3));
  }
}
