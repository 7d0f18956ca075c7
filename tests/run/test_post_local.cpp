// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "sim/run/sweep.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

RunResult post_local_run(const std::string& keys, const std::string& more = "") {
  const std::string text =
      "experiment: post-local\n"
      "model: cifar_two_conv\n"
      "training: {batch_per_device: 8, precision: fp32, optimizer: momentum, dataset: {samples: 32000}}\n"
      "cluster: {name: lab, nodes: [{name: n, count: 4, server: box}], fabric: {kind: switch, bandwidth: "
      "1Gbps, latency: "
      "25us}, servers: {box: {devices: [{device: ideal}], price: 2USD/h}}, devices: {ideal: {peak: {fp32: "
      "10TFLOPS}, "
      "memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring" +
      keys + "}\n" + more;
  return simulate_sweep(runs::Experiment::parse(text, "post-local.yaml", {}), 1).runs.front();
}

}  // namespace

TEST_CASE("post-local SGD: sums up to a step, averages from then on, and an epoch of both") {
  const RunResult sums = post_local_run(""), averages = post_local_run(", sync_every: 4"),
                  both = post_local_run(", sync_every: 4, local_from: 300");
  REQUIRE(both.phases.size() == 2);
  CHECK(both.phases[0].step_time_s == approx(sums.step_time_s));
  CHECK(both.phases[1].step_time_s == approx(averages.step_time_s));
  CHECK(averages.step_time_s < 0.5 * sums.step_time_s);
  CHECK(both.phases[1].first_step == 300);
  CHECK(both.phases[1].start_s == approx(300 * sums.step_time_s));
  CHECK(both.step_time_s == approx(averages.step_time_s));
  CHECK(both.comm_bytes == approx(averages.comm_bytes));
  // 1,000 steps of 32 images an epoch, at 8 USD an hour for four hosts.
  const double epoch_s = 300 * sums.step_time_s + 700 * averages.step_time_s;
  CHECK(both.epoch_time_s == approx(epoch_s));
  CHECK(both.cost_usd_per_epoch == approx(8 * epoch_s / 3600));
  CHECK(post_local_run(", sync_every: 4, local_from: 0").phases.empty());
  CHECK_THROWS_WITH_AS(post_local_run(", local_from: 300"),
                       doctest::Contains("strategy.local_from: goes with sync_every above 1"),
                       std::runtime_error);
}

TEST_CASE("post-local SGD: what varies is its last phase, and an epoch of both is not made of that alone") {
  const auto varying = [](const std::string& keys, const std::string& what) {
    return *post_local_run(keys, "variability: {runs: 3, jitter: 5%" + what + "}\n").variability;
  };
  const VariabilityResult averages = varying(", sync_every: 4", ""),
                          both = varying(", sync_every: 4, local_from: 300", "");
  CHECK(both.step_time_s == averages.step_time_s);
  CHECK(averages.epoch_time_s.has_value());
  CHECK_FALSE(both.epoch_time_s.has_value());
  CHECK_FALSE(both.cost_usd_per_epoch.has_value());
  CHECK_NOTHROW(
      varying(", sync_every: 4", ", failures: {per_host_day: 0.01, checkpoint: {time: 1s, every: 60s}}"));
  CHECK_THROWS_WITH_AS(varying(", sync_every: 4, local_from: 300",
                               ", failures: {per_host_day: 0.01, checkpoint: {time: 1s, every: 60s}}"),
                       doctest::Contains("variability.failures: are counted over an epoch of equal steps"),
                       std::runtime_error);
}
