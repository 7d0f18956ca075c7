// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>

#include "sim/planning/drawn_interruptions.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// The smallest count of a Poisson distribution with at least this share at or below it, by its sum.
double poisson_quantile(double mean, double share) {
  double term = std::exp(-mean), sum = term, count = 0;
  while (sum < share) {
    ++count;
    term *= mean / count;
    sum += term;
  }
  return count;
}

}  // namespace

TEST_CASE("interruptions: of a known rate as many as a Poisson distribution has four times of five") {
  for (const double mean : {0.05, 0.7, 3.0, 12.0, 150.0}) {
    CAPTURE(mean);
    const DrawnInterruptions drawn = draw_interruptions({mean, 100, 20, 1, 1});
    const double low = poisson_quantile(mean, 0.1), high = poisson_quantile(mean, 0.9);
    CHECK(std::abs(drawn.events.first - low) <= 1 + 0.02 * mean);
    CHECK(std::abs(drawn.events.second - high) <= 1 + 0.02 * mean);
  }
}

TEST_CASE("interruptions: what they take has the variance of a sum of so many exponentials") {
  // Many of them are nearly normal, with a standard deviation of sqrt(2 / mean) of what is lost.
  const double mean = 400, lost_share = 0.3;
  const DrawnInterruptions drawn = draw_interruptions({mean, 1000, 1000 * lost_share, 1, 1});
  const double reach = 1.28155 * std::sqrt(2 / mean) * lost_share;
  CHECK(drawn.time_factors.first == approx(1 - reach).epsilon(0.003));
  CHECK(drawn.time_factors.second == approx(1 + reach).epsilon(0.003));
}

TEST_CASE("interruptions: a rate of which little is known widens both, and none changes nothing") {
  // So many that only the rate counts: uniform from 0.5 to 1.5, four of five lie from 0.6 to 1.4.
  const DrawnInterruptions drawn = draw_interruptions({5000, 1000, 100, 0.5, 1.5});
  CHECK(drawn.events.first == approx(0.6 * 5000).epsilon(0.03));
  CHECK(drawn.events.second == approx(1.4 * 5000).epsilon(0.03));
  CHECK(drawn.time_factors.second == approx(1.04).epsilon(0.003));
  const DrawnInterruptions none = draw_interruptions({0, 1000, 0, 1, 1});
  CHECK(none.events == std::pair<double, double>{0, 0});
  CHECK(none.time_factors == std::pair<double, double>{1, 1});
  CHECK(draw_interruptions({3, 10, 1, 0, 2}).events == draw_interruptions({3, 10, 1, 0, 2}).events);
}
