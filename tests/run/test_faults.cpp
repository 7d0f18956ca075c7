// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "sim/run/faults.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

constexpr double hour_s = 3600;

/// Mean of many seeded runs, and how far it may be from the expectation (4 standard errors).
struct Sample {
  double time_s = 0, events = 0, paid_host_s = 0, time_error_s = 0, events_error = 0, paid_error_s = 0;
};

template <class Run>
Sample sample(int runs, Run run) {
  Sample s;
  double time2 = 0, events2 = 0, paid2 = 0;
  for (int i = 0; i < runs; ++i) {
    const RunEstimate one = run(static_cast<std::uint64_t>(1000 + i));
    s.time_s += one.time_s / runs, time2 += one.time_s * one.time_s / runs;
    s.events += one.events / runs, events2 += one.events * one.events / runs;
    s.paid_host_s += one.paid_host_s / runs, paid2 += one.paid_host_s * one.paid_host_s / runs;
  }
  const auto error = [&](double square, double mean) {
    return 4 * std::sqrt(std::max(0.0, square - mean * mean) / runs);
  };
  s.time_error_s = error(time2, s.time_s), s.events_error = error(events2, s.events);
  s.paid_error_s = error(paid2, s.paid_host_s);
  return s;
}

}  // namespace

TEST_CASE("repeated runs with interruptions converge to the closed form") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    const auto draw = [&](double low, double high) {
      return low * std::pow(high / low, static_cast<double>(random() % 1000) / 999);
    };
    const double hosts = 1 + static_cast<double>(random() % 16), work_s = draw(1, 48) * hour_s;
    Faults faults;
    faults.per_host_s = draw(0.003, 0.6) / hour_s / hosts;
    faults.lost_at_once = i % 3 == 0 ? std::min(2.0, hosts) : 1;
    Recovery recovery;
    recovery.checkpoint_s = draw(1, 120);
    if (i % 2 == 0) recovery.every_s = draw(0.1, 2) * hour_s;
    recovery.wait_s = draw(1, 1800);
    recovery.restart_s = draw(1, 600);
    const RunEstimate expected = expected_run(faults, recovery, hosts, work_s);
    const Sample drawn =
        sample(4000, [&](std::uint64_t seed) { return drawn_run(faults, recovery, hosts, work_s, seed); });
    CHECK(std::abs(drawn.time_s - expected.time_s) <= drawn.time_error_s + 1e-9 * expected.time_s);
    CHECK(std::abs(drawn.events - expected.events) <= drawn.events_error + 1e-9);
    CHECK(std::abs(drawn.paid_host_s - expected.paid_host_s) <=
          drawn.paid_error_s + 1e-9 * expected.paid_host_s);
    CHECK(expected.time_s >= work_s);
  }
}

TEST_CASE("without events a run takes its work and its checkpoints, and everything is paid") {
  const Recovery recovery{30, 600.0, 100, 100};
  const RunEstimate run = expected_run({}, recovery, 4, 3000);
  CHECK(run.time_s == approx(3000 + 5 * 30));
  CHECK(run.paid_host_s == approx(4 * 3150));
  CHECK(run.events == 0);
  CHECK(drawn_run({}, recovery, 4, 3000, 1).time_s == approx(3150));
  CHECK(expected_run({}, {30, {}, 100, 100}, 4, 3000).time_s == approx(3030));  // only the result's
  CHECK(expected_run({}, recovery, 4, 3001).time_s == approx(3001 + 6 * 30));
}

TEST_CASE("checkpoints that are asked for are all written, however short the pieces between them") {
  // 600 s of work in pieces of 0.5 s: 1,200 checkpoints of 2 s. Rare events may only lengthen it.
  const Recovery recovery{2.0, 0.5, 0, 60};
  CHECK(expected_run({0, 1}, recovery, 8, 600).time_s == approx(600 + 1200 * 2));
  for (const double per_host_s : {1e-12, 1e-9, 1e-7, 1e-6})
    CHECK(expected_run({per_host_s, 1}, recovery, 8, 600).time_s >= 600 + 1200 * 2);
}

TEST_CASE("Daly's interval is within a thousandth of the best there is, and Young's is its first term") {
  for (const double mean_s : {600.0, hour_s, 24 * hour_s, 720 * hour_s})
    for (const double checkpoint_s : {1.0, 10.0, 60.0}) {
      CAPTURE(mean_s);
      CAPTURE(checkpoint_s);
      const double work_s = 1000 * mean_s;
      const auto overhead = [&](double every_s) {
        // The same per second of work for every interval: whole pieces only.
        return std::expm1((every_s + checkpoint_s) / mean_s) * mean_s / every_s;
      };
      double best = std::numeric_limits<double>::infinity();
      for (double every_s = checkpoint_s / 4; every_s < 20 * mean_s; every_s *= 1.01)
        best = std::min(best, overhead(every_s));
      CHECK(overhead(daly_interval_s(checkpoint_s, mean_s)) <= 1.001 * best);
      const Faults faults{1 / mean_s, 1};
      CHECK(checkpoint_interval_s(faults, {checkpoint_s, {}, 0, 0}, 1, work_s) ==
            approx(daly_interval_s(checkpoint_s, mean_s)));
    }
  CHECK(daly_interval_s(1e-6, 1e6) == approx(young_interval_s(1e-6, 1e6)).epsilon(1e-4));
  CHECK(daly_interval_s(100, 40) == 40);
}

TEST_CASE("elastic continuation: long runs converge to the closed form") {
  for (const double per_hour : {0.01, 0.1, 0.6})
    for (const double at_once : {1.0, 2.11}) {
      CAPTURE(per_hour);
      CAPTURE(at_once);
      const Faults faults{per_hour / hour_s, at_once};
      const Elastic elastic{20, 900};
      const double work_s = 2000 * hour_s;
      const RunEstimate expected = expected_elastic_run(faults, elastic, 32, work_s);
      const RunEstimate drawn = drawn_elastic_run(faults, elastic, 32, work_s, 5);
      CHECK(drawn.time_s == approx(expected.time_s).epsilon(0.01));
      CHECK(std::abs(drawn.events - expected.events) <= 4 * std::sqrt(expected.events));  // a Poisson number
      CHECK(drawn.paid_host_s == approx(expected.paid_host_s).epsilon(0.01));
    }
  CHECK(drawn_elastic_run({}, {20, 900}, 4, 1000, 1).time_s == approx(1000));
}

TEST_CASE("going on with fewer machines beats waiting where replacements take long") {
  const Faults faults{0.1 / hour_s, 1};
  const double waiting_s = expected_run(faults, {30, {}, 1800, 300}, 16, 24 * hour_s).time_s;
  const double elastic_s = expected_elastic_run(faults, {30, 1800}, 16, 24 * hour_s).time_s;
  CHECK(elastic_s < waiting_s);
  CHECK(elastic_s > 24 * hour_s);
}

TEST_CASE("an interval of repeated runs holds its share of other runs, and is the same every time") {
  const Faults faults{0.05 / hour_s, 2};
  const Recovery recovery{30, {}, 600, 300};
  const auto run = [&](std::uint64_t seed) { return drawn_run(faults, recovery, 8, 12 * hour_s, seed); };
  const RunSpread spread = repeated_runs(run, 1, 2000, 0.8), again = repeated_runs(run, 1, 2000, 0.8);
  CHECK(spread.low_s == again.low_s);
  CHECK(spread.mean.time_s == again.mean.time_s);
  int inside = 0;
  for (int i = 0; i < 2000; ++i) {
    const double time_s = run(static_cast<std::uint64_t>(100'000 + i)).time_s;
    inside += time_s >= spread.low_s && time_s <= spread.high_s;
  }
  CHECK(inside / 2000.0 == approx(0.8).epsilon(0.06));
  CHECK(spread.mean.time_s == approx(expected_run(faults, recovery, 8, 12 * hour_s).time_s).epsilon(0.01));
}
