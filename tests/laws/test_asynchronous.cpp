// SPDX-License-Identifier: MIT
// Asynchronous training in the long run: against a queueing formula and against an event loop of its own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/lab.h"

using namespace convoy;

namespace {

double apart(double a, double b) { return std::abs(a / b - 1); }

/// One worker a host of speed speeds[i] that computes `compute_s` / speed, pushes 4 bytes x parameters to one
/// server and pulls them back.
double step_of(const std::vector<double>& speeds, double compute_s, double transfer_s) {
  std::string nodes;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    nodes += fmt::format("{{name: n{}x, count: 1, server: box, speed: {:.6f}}}, ", i, speeds[i]);
  const std::string cluster = fmt::format(
      "{{name: lab, nodes: [{}], fabric: {{kind: switch, bandwidth: {:.9f}GB/s, latency: 0us}}, {}}}", nodes,
      4e-3 / transfer_s, lab::ideal_servers());
  const auto images = static_cast<std::int64_t>(compute_s / 3e-4 + 0.5);
  return lab::Experiment(
             lab::custom_model(1, 1'000'000), cluster,
             "{kind: data_parallel, sync: parameter_server, mode: async, sharding: even, overlap: false}",
             images)
      .run()
      .step_time_s;
}

/// Mean value analysis of N workers between a delay and two stations that share their rate (Reiser &
/// Lavenberg, J. ACM 27(2), 1980): the time in which each of them has made a step.
double mean_value_analysis_s(int workers, double compute_s, double transfer_s) {
  double queue = 0, cycle_s = 0;
  for (int n = 1; n <= workers; ++n) {
    const double response_s = transfer_s * (1 + queue);
    cycle_s = compute_s + 2 * response_s;
    queue = n * response_s / cycle_s;
  }
  return cycle_s;
}

/// The same system event by event: two links of rate 1 / transfer_s shared equally, compute times between
/// half and one and a half of their mean.
double event_loop_s(const std::vector<double>& speeds, double compute_s, double transfer_s, unsigned seed) {
  struct Worker {
    int phase = 0;  // 0 computes, 1 pushes, 2 pulls
    double left_s = 0;
    int steps = 0;
  };
  std::mt19937 random(seed);
  const auto draw = [&](std::size_t i) {
    return compute_s / speeds[i] * (0.5 + static_cast<double>(random()) / 4294967296.0);
  };
  std::vector<Worker> workers(speeds.size());
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].left_s = draw(i);
  constexpr int steps = 3000;
  double now_s = 0;
  int done = 0;
  while (done < steps * static_cast<int>(workers.size())) {
    double users[3] = {1, 0, 0};
    for (const Worker& worker : workers)
      if (worker.phase > 0) ++users[worker.phase];
    double next_s = std::numeric_limits<double>::infinity();
    for (const Worker& worker : workers) next_s = std::min(next_s, worker.left_s * users[worker.phase]);
    now_s += next_s;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Worker& worker = workers[i];
      worker.left_s -= next_s / users[worker.phase];
      if (worker.left_s > 1e-12) continue;
      worker.phase = (worker.phase + 1) % 3;
      worker.left_s = worker.phase == 0 ? draw(i) : transfer_s;
      if (worker.phase == 0) ++done;
    }
  }
  return now_s / done * static_cast<double>(workers.size());
}

}  // namespace

TEST_CASE("async: two workers that compute 30 ms and send 40 ms each way") {
  // Alone 110 ms. Two that meet at random share the link for (40 - d)^+ of each way, d between -55 and 55 ms
  // apart: 110 + 2 x 1600 / 110 ms.
  CHECK(apart(step_of({1}, 30e-3, 40e-3), 110e-3) < 1e-6);
  CHECK(apart(mean_value_analysis_s(2, 30e-3, 40e-3), 139.09e-3) < 1e-4);
  CHECK(apart(step_of({1, 1}, 30e-3, 40e-3), 139.09e-3) < 0.02);
}

TEST_CASE("async: equal workers are as fast as mean value analysis says") {
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const int workers = 1 + static_cast<int>(random() % 16);
    const double compute_s = 3e-4 * static_cast<double>(10 + random() % 200),
                 transfer_s = 1e-3 * static_cast<double>(1 + random() % 60);
    CAPTURE(workers);
    CAPTURE(compute_s);
    CAPTURE(transfer_s);
    CHECK(apart(step_of(std::vector<double>(static_cast<std::size_t>(workers), 1.0), compute_s, transfer_s),
                mean_value_analysis_s(workers, compute_s, transfer_s)) < 0.025);
  }
}

TEST_CASE("async: unequal workers are as fast as an event loop of their own finds them") {
  std::mt19937 random(11);
  for (unsigned i = 0; i < 20; ++i) {
    std::vector<double> speeds;
    for (std::size_t n = 2 + random() % 7; n > 0; --n)
      speeds.push_back(0.4 + 0.1 * static_cast<double>(random() % 9));
    const double compute_s = 3e-4 * static_cast<double>(10 + random() % 200),
                 transfer_s = 1e-3 * static_cast<double>(1 + random() % 30);
    CAPTURE(speeds);
    CAPTURE(compute_s);
    CAPTURE(transfer_s);
    CHECK(apart(step_of(speeds, compute_s, transfer_s),
                event_loop_s(speeds, compute_s, transfer_s, 100 + i)) < 0.03);
  }
}

TEST_CASE("async: one worker more never makes all of them slower") {
  double last_per_s = 0;
  for (std::size_t workers = 1; workers <= 16; ++workers) {
    CAPTURE(workers);
    const double per_s =
        static_cast<double>(workers) / step_of(std::vector<double>(workers, 1.0), 60e-3, 5e-3);
    CHECK(per_s >= last_per_s * (1 - 0.015));
    last_per_s = per_s;
  }
}
