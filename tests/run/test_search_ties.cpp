// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>

#include "sim/run/dice.h"
#include "sim/run/search/reasons.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// A step of 100 images: computing, exposed communication and nothing else.
RunResult step_of(double compute_s, double comm_s, double images = 100) {
  RunResult result;
  result.global_batch = images;
  result.compute_s = compute_s;
  result.exposed_comm_s = comm_s;
  result.step_time_s = compute_s + comm_s;
  result.comm_bytes = comm_s > 0 ? 1e6 : 0;
  result.energy_j = 100 * result.step_time_s;
  result.interval.emplace();
  result.interval->step_time_s = {0.9 * result.step_time_s, 1.1 * result.step_time_s};
  return result;
}

/// In how many of many draws the candidate that is said to be longer is shorter: all steps on one set of
/// devices and one network, each error drawn once for both, and each step's own by itself.
double share_of_turned(const RunResult& other, const RunResult& best, const StepSpreads& spreads) {
  SeededDice dice(7);
  int turned = 0;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    const double compute = std::exp(spreads.compute * dice.normal()),
                 comm = std::exp(spreads.comm * dice.normal());
    const auto step_s = [&](const RunResult& result) {
      const double own = result.comm_bytes > 0 ? std::exp(spreads.devices * dice.normal()) - 1 : 0;
      return result.compute_s * compute + result.exposed_comm_s * comm + own * result.step_time_s;
    };
    const double best_s = step_s(best), other_s = step_s(other);
    turned += other_s < best_s;
  }
  return static_cast<double>(turned) / draws;
}

}  // namespace

TEST_CASE("search: what candidates have in common makes no tie, and what they have not makes one") {
  const StepSpreads spreads{0.10, 0.30, 0.02};
  const auto tie = [&](const RunResult& other, const RunResult& best) {
    return is_tie(Objective::step_time, other, best, spreads);
  };
  // 5 % more computing, on the same devices: 10 % of spread make both longer. Within the step's interval, no
  // tie.
  CHECK_FALSE(tie(step_of(1.05, 0), step_of(1.0, 0)));
  CHECK_FALSE(tie(step_of(0.5, 0.55), step_of(0.5, 0.5)));  // 0.05 of 1 s, its own error is 0.038
  CHECK(tie(step_of(0.5, 0.53), step_of(0.5, 0.5)));        // 0.03
  // One computes less and sends more: the network's error does not meet the devices'.
  CHECK(tie(step_of(0.6, 0.5), step_of(1.0, 0)));
  CHECK_FALSE(tie(step_of(0.6, 0.85), step_of(1.0, 0)));
  // Of 200 images the same as twice 100.
  CHECK(tie(step_of(1.2, 1.0, 200), step_of(1.0, 0)));
  CHECK_FALSE(tie(step_of(2.1, 0, 200), step_of(1.0, 0)));
  // Where everything is exact there is none; memory is as the best one's interval says.
  RunResult exact = step_of(1, 0);
  exact.interval.reset();
  CHECK_FALSE(tie(step_of(1, 0), exact));
  RunResult fuller = step_of(1, 0), best = step_of(1, 0);
  best.peak_memory_bytes = 100, fuller.peak_memory_bytes = 105;
  best.interval->peak_memory_bytes = {95, 106};
  CHECK(is_tie(Objective::memory, fuller, best, spreads));
  fuller.peak_memory_bytes = 107;
  CHECK_FALSE(is_tie(Objective::memory, fuller, best, spreads));
  // A bound: the most favourable of what may be behind it.
  CHECK(may_be_tie(Objective::step_time, {0.0103, 0.0103}, step_of(0.5, 0.5), spreads));
  CHECK_FALSE(may_be_tie(Objective::step_time, {0.0106, 0.0106}, step_of(0.5, 0.5), spreads));
}

TEST_CASE("search: at the edge of a tie the order of the two turns in one of ten draws of the errors") {
  // 80 % of the differences lie within the interval, 10 % below it: there the other is the shorter one.
  const StepSpreads spreads{0.08, 0.15, 0.03};
  for (const double less_computing : {0.0, 0.1, 0.3}) {
    CAPTURE(less_computing);
    const RunResult best = step_of(0.8, 0.2);
    double low = 0, high = 1;
    for (int i = 0; i < 40; ++i) {
      const double more_s = (low + high) / 2;
      const RunResult other = step_of(0.8 - less_computing, 0.2 + less_computing + more_s);
      (is_tie(Objective::step_time, other, best, spreads) ? low : high) = more_s;
    }
    const double turned =
        share_of_turned(step_of(0.8 - less_computing, 0.2 + less_computing + low), best, spreads);
    CHECK(turned == approx(0.1).epsilon(0.25));
  }
}
