// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "sim/lowering/jitter.h"

using namespace convoy;

TEST_CASE("the expected maximum of normal variables: closed forms to five of them") {
  // David & Nagaraja, Order Statistics, 3rd ed. 2003, section 3.2.
  const double root_pi = std::sqrt(std::numbers::pi), angle = std::asin(1.0 / 3) / std::numbers::pi;
  CHECK(expected_maximum(1) == 0);
  CHECK(expected_maximum(2) == doctest::Approx(1 / root_pi).epsilon(1e-10));
  CHECK(expected_maximum(3) == doctest::Approx(1.5 / root_pi).epsilon(1e-10));
  CHECK(expected_maximum(4) == doctest::Approx(3 / root_pi * (0.5 + angle)).epsilon(1e-10));
  CHECK(expected_maximum(5) == doctest::Approx(5 / root_pi * (0.25 + 1.5 * angle)).epsilon(1e-10));
}

TEST_CASE("the expected maximum of many is that of drawing them") {
  std::mt19937_64 random(2024);
  std::normal_distribution<double> normal;
  for (const std::size_t n : {8u, 64u, 1000u}) {
    CAPTURE(n);
    constexpr int draws = 4000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      double greatest = -1e300;
      for (std::size_t k = 0; k < n; ++k) greatest = std::max(greatest, normal(random));
      sum += greatest, squares += greatest * greatest;
    }
    const double mean = sum / draws, standard_error = std::sqrt((squares / draws - mean * mean) / draws);
    CHECK(std::abs(mean - expected_maximum(n)) < 4 * standard_error);
  }
}

TEST_CASE("the expected maximum grows with the number, slower than sqrt(2 ln n)") {
  double last = 0;
  for (std::size_t n = 2; n <= 1u << 20; n *= 2) {
    CAPTURE(n);
    CHECK(expected_maximum(n) > last);
    CHECK(expected_maximum(n) < std::sqrt(2 * std::log(static_cast<double>(n))));
    last = expected_maximum(n);
  }
}

TEST_CASE("a synchronous step is longer by its jitter times the expected maximum, and alone by nothing") {
  CHECK(synchronous_slowdown(0.1, 1) == 1);
  CHECK(synchronous_slowdown(0, 1000) == 1);
  CHECK(synchronous_slowdown(0.02, 8) == doctest::Approx(1 + 0.02 * 1.4236003060).epsilon(1e-9));
}
