// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "sim/lowering/jitter.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// E[max] of n standard normals, from devices of mean 1 s and 5 % jitter.
double expected_maximum(std::size_t n) { return (expected_last_s({{1, n}}, 0.05) - 1) / 0.05; }

}  // namespace

TEST_CASE("the expected maximum of normal variables: closed forms to five of them") {
  // David & Nagaraja, Order Statistics, 3rd ed. 2003, section 3.2.
  const double root_pi = std::sqrt(std::numbers::pi), angle = std::asin(1.0 / 3) / std::numbers::pi;
  CHECK(std::abs(expected_maximum(1)) < 1e-9);
  CHECK(expected_maximum(2) == approx(1 / root_pi).epsilon(1e-8));
  CHECK(expected_maximum(3) == approx(1.5 / root_pi).epsilon(1e-8));
  CHECK(expected_maximum(4) == approx(3 / root_pi * (0.5 + angle)).epsilon(1e-8));
  CHECK(expected_maximum(5) == approx(5 / root_pi * (0.25 + 1.5 * angle)).epsilon(1e-8));
}

TEST_CASE("two unequal normals: Clark's closed form") {
  // C. E. Clark, Operations Research 9(2), 1961: E[max] = m1 Phi(a) + m2 Phi(-a) + s phi(a).
  for (const double slower : {1.0, 1.02, 1.1, 1.5, 3.0})
    for (const double jitter : {0.01, 0.1, 0.3}) {
      CAPTURE(slower);
      CAPTURE(jitter);
      const double s = jitter * std::hypot(1, slower), a = (1 - slower) / s;
      const auto below = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
      const double density = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
      CHECK(expected_last_s({{1, 1}, {slower, 1}}, jitter) ==
            approx(below(a) + slower * below(-a) + s * density).epsilon(1e-8));
    }
}

TEST_CASE("the expected last of many is that of drawing them") {
  std::mt19937_64 random(2024);
  std::normal_distribution<double> normal;
  const std::vector<std::vector<DeviceSteps>> cases{
      {{1, 8}}, {{1, 300}}, {{1, 7}, {1.1, 1}}, {{0.4, 20}, {0.9, 3}, {1.0, 2}}, {{1, 12}, {3, 1}}};
  for (const std::vector<DeviceSteps>& steps : cases) {
    CAPTURE(steps.size());
    CAPTURE(steps[0].devices);
    constexpr int draws = 4000;
    constexpr double jitter = 0.08;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      double last_s = 0;
      for (const DeviceSteps& step : steps)
        for (std::size_t k = 0; k < step.devices; ++k)
          last_s = std::max(last_s, step.mean_s * (1 + jitter * normal(random)));
      sum += last_s, squares += last_s * last_s;
    }
    const double mean = sum / draws, standard_error = std::sqrt((squares / draws - mean * mean) / draws);
    CHECK(std::abs(mean - expected_last_s(steps, jitter)) < 4 * standard_error);
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

TEST_CASE("where one slow device decides every step, jitter costs nothing, and waiting is not computing") {
  const auto run = [](const std::string& nodes, const std::string& jitter) {
    std::string cluster = lab::star(1, "1000GB/s", "0us");
    const std::size_t at = cluster.find("nodes: ");
    cluster.replace(at, cluster.find(']', at) + 1 - at, "nodes: [" + nodes + "]");
    cluster.insert(1, "step_jitter: " + jitter + ", ");
    return lab::Experiment(lab::custom_model(1, 1), cluster, "{kind: data_parallel, sync: all_reduce}", 10)
        .run();
  };
  const std::string seven = "{name: n, count: 7, server: box}";
  const std::string slow = seven + ", {name: s, count: 1, server: box, speed: 0.33}";
  CHECK(run(slow, "10%").step_time_s / run(slow, "0%").step_time_s == approx(1).epsilon(1e-6));
  const ReplayResult equal = run("{name: n, count: 8, server: box}", "10%");
  CHECK(equal.step_time_s / 3e-3 == approx(1 + 0.1 * 1.4236).epsilon(1e-4));
  CHECK(equal.endpoints[0].compute_s / 3e-3 == approx(1).epsilon(1e-6));
}
