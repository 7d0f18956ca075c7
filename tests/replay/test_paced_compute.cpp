// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "sim/replay/paced_compute.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

const Stops no_stops({}, {});

}  // namespace

TEST_CASE("a task goes on at the rest of its rate while collectives are under way") {
  Engine engine({1.0}, 1, Contention::none);
  PacedCompute compute(engine, {0.25, 0.0}, no_stops);
  double end_s = 0, other_end_s = 0;
  compute.start(0, {10}, 0, [&] { end_s = engine.now_s(); });
  compute.start(1, {10}, 0, [&] { other_end_s = engine.now_s(); });
  for (const std::uint32_t c : {0u, 1u}) {
    engine.after(2) = [&compute, c] { compute.collective_begins(c, 0); };
    engine.after(4) = [&compute, c] {
      compute.collective_begins(c, 0);
    };  // two at a time take no more than one
    engine.after(5) = [&compute, c] { compute.collective_ends(c); };
    engine.after(6) = [&compute, c] { compute.collective_ends(c); };
  }
  CHECK(compute.computes(0));
  engine.run();
  CHECK(end_s == approx(2 + 4 + (10 - 2 - 4 * 0.75)));
  CHECK(other_end_s == 10);
  CHECK_FALSE(compute.computes(0));
}

TEST_CASE("a task's work is the integral of its rate, whatever comes and goes") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const double taken = 0.5 * std::uniform_real_distribution<>(0, 1)(dice);
    Engine engine({1.0}, 1, Contention::none);
    PacedCompute compute(engine, {taken}, no_stops);
    std::uniform_real_distribution<> moment(0, 4);
    std::vector<std::pair<double, double>> collectives;
    for (int i = 0; i < 5; ++i) {
      const double begin_s = moment(dice), end_s = begin_s + moment(dice);
      collectives.emplace_back(begin_s, end_s);
      engine.after(begin_s) = [&] { compute.collective_begins(0, 0); };
      engine.after(end_s) = [&] { compute.collective_ends(0); };
    }
    double end_s = 0;
    compute.start(0, {5}, 0, [&] { end_s = engine.now_s(); });
    engine.run();
    // Second implementation: small steps.
    double done_s = 0, now_s = 0;
    constexpr double step_s = 1e-4;
    for (; done_s < 5; now_s += step_s) {
      const bool busy = std::any_of(collectives.begin(), collectives.end(),
                                    [&](auto c) { return c.first <= now_s && now_s < c.second; });
      done_s += step_s * (busy ? 1 - taken : 1);
    }
    CHECK(end_s == approx(now_s).epsilon(1e-3));
  }
}

TEST_CASE("a collective of d seconds beside endless computing takes d / (1 - share), beside none d") {
  Engine engine({1.0}, 1, Contention::none);
  PacedCompute compute(engine, {0.2, 0.2, 0.0}, no_stops);
  std::vector<double> end_s(3, 0);
  for (const std::uint32_t c : {0u, 1u, 2u}) {
    if (c != 1) compute.start(c, {100}, 0, [] {});
    engine.after(1) = [&compute, c] { compute.collective_begins(c, 7); };
    engine.after(5) = [&, c] {  // its last message
      const bool owes = compute.works_off(c, 7, [&, c] { end_s[c] = engine.now_s(); });
      if (!owes) end_s[c] = engine.now_s();
    };
  }
  engine.run();
  CHECK(end_s[0] == approx(1 + 4 / 0.8));
  CHECK(end_s[1] == 5);
  CHECK(end_s[2] == 5);
}

TEST_CASE("what a collective and a task take from each other: as in small steps") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto draw = [&](double from, double to) {
      return std::uniform_real_distribution<>(from, to)(dice);
    };
    const double taken = draw(0, 0.5), begin_s = draw(0, 3), messages_s = draw(0.1, 4);
    const double task_s[2]{draw(0.5, 4), draw(0.5, 4)}, pause_s = draw(0, 2);
    Engine engine({1.0}, 1, Contention::none);
    PacedCompute compute(engine, {taken}, no_stops);
    double collective_end_s = 0, compute_end_s = 0;
    const auto ended = [&] {
      collective_end_s = engine.now_s();
      compute.collective_ends(0);
    };
    engine.after(begin_s) = [&] { compute.collective_begins(0, 0); };
    engine.after(begin_s + messages_s) = [&] {
      if (!compute.works_off(0, 0, [&ended] { ended(); })) ended();
    };
    const auto second_task = [&] {
      compute.start(0, {task_s[1]}, 0, [&] { compute_end_s = engine.now_s(); });
    };
    compute.start(0, {task_s[0]}, 0, [&engine, &second_task, pause_s] {
      engine.after(pause_s) = [&second_task] { second_task(); };
    });
    engine.run();
    // Second implementation: both go on in steps, each at its rate of the moment.
    constexpr double step_s = 1e-4;
    double left_s[2]{task_s[0], task_s[1]}, paused_s = pause_s, owed_s = 0, now_s = 0;
    double small_collective_s = -1, small_compute_s = -1;
    while (small_collective_s < 0 || small_compute_s < 0) {
      const bool communicates = now_s >= begin_s && small_collective_s < 0;
      const bool computes = left_s[0] > 0 || (paused_s <= 0 && left_s[1] > 0);
      if (computes) (left_s[0] > 0 ? left_s[0] : left_s[1]) -= step_s * (communicates ? 1 - taken : 1);
      if (!computes && left_s[0] <= 0) paused_s -= step_s;
      if (communicates && now_s < begin_s + messages_s) owed_s += computes ? taken * step_s : 0;
      if (communicates && now_s >= begin_s + messages_s) owed_s -= step_s * (computes ? 1 - taken : 1);
      now_s += step_s;
      if (communicates && now_s >= begin_s + messages_s && owed_s <= 0) small_collective_s = now_s;
      if (left_s[1] <= 0 && small_compute_s < 0) small_compute_s = now_s;
    }
    CHECK(collective_end_s == approx(small_collective_s).epsilon(1e-3));
    CHECK(compute_end_s == approx(small_compute_s).epsilon(1e-3));
  }
}
