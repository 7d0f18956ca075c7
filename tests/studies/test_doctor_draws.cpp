// SPDX-License-Identifier: MIT
// Intervals beside draws of all uncertain numbers, each simulated.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/studies/doctors.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// A training step of ResNet-18 with 16 images a device, of which all numbers are drawn at once.
PreparedRun drawn_experiment(const std::string& rest, const std::vector<std::string>& settings = {}) {
  const Experiment experiment =
      experiment_of("experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 16}\n" + rest, settings);
  Preparer preparer(experiment);
  return preparer.prepare(0);
}

const char* const eight_v100 =
    "cluster: {server: aws-p3.16xlarge, nodes: 1}\nstrategy: {kind: data_parallel, sync: all_reduce}\n";
const char* const four_k80_ring =
    "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n"
    "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n";
const char* const four_k80_server =
    "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n"
    "strategy: {kind: data_parallel, sync: parameter_server}\n";
const std::vector<std::string> known_host{"cluster.servers={aws-p3.16xlarge: {host: {issue_factor: 1}}}"};

/// How far the lower and the upper end of the draws lie above the interval's, in widths of the draws.
std::array<double, 2> ends_above(const DoctorRun& run) {
  const std::array<double, 2>&stated = run.interval->step_time_s, &drawn = run.drawn->step_time_s;
  const double width = std::log(drawn[1] / drawn[0]);
  return {std::log(drawn[0] / stated[0]) / width, std::log(drawn[1] / stated[1]) / width};
}

}  // namespace

// Many draws of six kinds of experiments: scripts/intervals, docs/doctor.md.
TEST_CASE("doctor: where steps are powers of the numbers, draws of all of them give the interval of a run") {
  for (const PreparedRun& prepared : {drawn_experiment(four_k80_ring), drawn_experiment(four_k80_server),
                                      drawn_experiment(eight_v100, known_host)}) {
    CAPTURE(prepared.strategy);
    const DrawsAsked asked{1000, 7};
    CAPTURE(asked.seed);
    const DoctorRun run = diagnose_run(prepared, asked);
    REQUIRE(run.drawn);
    CHECK(run.drawn->draws == 1000);
    // Three standard deviations of a 10th percentile of 1,000 draws are 6.3 % of the width, and of their share 3.8 %.
    for (const double above : ends_above(run)) CHECK(std::abs(above) < 0.1);
    CHECK(std::abs(run.drawn->inside - 0.8) < 0.05);
  }
}

TEST_CASE("doctor: where a number only ever makes a step longer, draws lie above the interval of a run") {
  // Eight V100 do not wait for a host that is faster than the typical one, and wait for a slower one.
  const PreparedRun prepared = drawn_experiment(eight_v100);
  const DoctorRun run = diagnose_run(prepared, {1000, 7});
  const DoctorInput& host = input_of(run, "cluster.servers.\"aws-p3.16xlarge\".host.issue_factor");
  CHECK(std::log(host.step_time_s[1] / run.step_time_s) >
        5 * std::log(run.step_time_s / host.step_time_s[0]));
  for (const double above : ends_above(run)) CHECK(above > 0.1);
  const double width = std::log(run.interval->step_time_s[1] / run.interval->step_time_s[0]);
  CHECK(std::log(run.drawn->step_time_s[1] / run.drawn->step_time_s[0]) ==
        doctest::Approx(width).epsilon(0.1));
}

TEST_CASE(
    "doctor: draws repeat with their seed, and one number alone gives the steps that doctor tells of it") {
  for (const PreparedRun& prepared :
       {drawn_experiment(four_k80_ring), drawn_experiment(four_k80_server), drawn_experiment(eight_v100)}) {
    CAPTURE(prepared.strategy);
    const auto drawn = [&](std::uint64_t seed) {
      return diagnose_run(prepared, {20, seed}).drawn->step_time_s;
    };
    CHECK(drawn(7) == drawn(7));
    CHECK(drawn(7) != drawn(8));
    const std::vector<Doubt> doubts = doubts_of(prepared);
    std::vector<StepRange> ranges;
    for (const Doubt& doubt : doubts) ranges.push_back(step_range_s(prepared, doubt));
    for (std::size_t i = 0; i < doubts.size(); ++i)
      for (const int end : {0, 1}) {
        std::vector<double> deviations(doubts.size(), 0.0);
        deviations[i] = (end == 0 ? -1 : 1) * quantile_80;
        CHECK(drawn_step_s(prepared, doubts, ranges, deviations) == approx(ranges[i][end]));
      }
  }
}

TEST_CASE("spread: the interval is that of 2,000 draws, simulated each") {
  DoctorHosts hosts;
  hosts.device = "ideal";
  hosts.model =
      "{name: toy, input: [3, 32, 32], layers: [{name: body, kind: custom, forward_flops: 1e9, "
      "backward_flops: 2e9, "
      "parameters: 25000000, output: [10], memory_bytes: 0}]}";
  hosts.training = "batch_per_device: 128, precision: fp32";
  hosts.fabric = "bandwidth: 20Gbps, latency: 100us";
  hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false}";
  const std::string exact = hosts.text();
  hosts.more = "spread: {cluster.fabric.bandwidth: 25%, cluster.devices.ideal.peak.fp32: 20%}\n";
  const RunResult run = result_of(hosts.text());
  REQUIRE(run.interval);
  CHECK_FALSE(result_of(exact).interval);
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  std::vector<double> steps_s;
  for (int draw = 0; draw < 2000; ++draw) {
    const double bandwidth = 20 * std::exp(std::log(1.25) * normal(engine)),
                 peak = 10 * std::exp(std::log(1.2) * normal(engine));
    // 12.8 GFLOP x 3 a device, and 2 (n - 1) / n of 100 MB each way between two hosts, in two messages.
    steps_s.push_back(128 * 3e9 / (peak * 1e12) + 2 * (50e6 / (bandwidth * 1e9 / 8) + 100e-6));
  }
  CHECK(result_of(exact).step_time_s == approx(128 * 3e9 / 1e13 + 2 * (50e6 / 2.5e9 + 100e-6)));
  std::sort(steps_s.begin(), steps_s.end());
  // Quantiles of so many draws vary by 4 % of a standard deviation.
  const double deviation_s = (steps_s[1800] - steps_s[200]) / (2 * quantile_80);
  CHECK(std::abs(run.interval->step_time_s[0] - steps_s[200]) < 0.2 * deviation_s);
  CHECK(std::abs(run.interval->step_time_s[1] - steps_s[1800]) < 0.2 * deviation_s);
}

TEST_CASE(
    "spread: a loader that idles widens nothing, and one that is waited for does, unless its rate is given") {
  DoctorHosts hosts;
  hosts.nodes = 1;
  hosts.device = "v100-sxm2-16gb";
  hosts.model = "resnet50";
  const auto with = [&](const std::string& input, int vcpus) {
    hosts.training = "batch_per_device: 32, input: " + input;
    hosts.vcpus = fmt::format(", vcpus: {}", vcpus);
    return result_of(hosts.text());
  };
  const std::string
      pil = "{kind: jpeg, library: pil, workers_per_device: 1000, cached: true}",
      given = "{kind: jpeg, library: pil, core_images_per_s: 85, workers_per_device: 1000, cached: true}";
  const RunResult idle = with(pil, 512), idle_given = with(given, 512), bound = with(pil, 4),
                  bound_given = with(given, 4);
  REQUIRE(bound.bottleneck.kind == "input");
  CHECK(idle.interval == idle_given.interval);
  CHECK(bound.step_time_s == bound_given.step_time_s);
  CHECK(spread_of(bound.interval) > spread_of(bound_given.interval) + 0.1);
  // The step is the loader's: slower by its spread, it is longer by as much.
  const double factor = std::exp(quantile_80 * loader_spread()) - 1;
  CHECK(bound.interval->step_time_s[1] / bound.step_time_s - 1 >= factor * (1 - 1e-9));
  // So does a spread that the experiment writes itself.
  hosts.training = "batch_per_device: 32, input: " + given;
  hosts.more = "spread: {training.input.core_images_per_s: 20%}\n";
  CHECK(result_of(hosts.text()).interval->step_time_s[1] > bound_given.interval->step_time_s[1]);
}

TEST_CASE("spread: what is wrong with it is told at its place") {
  const auto error = [](const std::string& spread) {
    DoctorHosts hosts;
    hosts.more = "spread: {" + spread + "}\n";
    try {
      result_of(hosts.text());
    } catch (const InputError& wrong) {
      return std::string(wrong.what());
    }
    return std::string("none");
  };
  CHECK(error("cluster.fabric.bandwidth: 0%") ==
        "doctor.yaml:10:36: spread.cluster.fabric.bandwidth: '0%' must be more than zero");
  CHECK(error("cluster.fabric.bandwidht: 5%") ==
        "doctor.yaml:10:36: spread.cluster.fabric.bandwidht: the file writes no number at this "
        "path; only numbers that the file or --set writes can have a spread");
  CHECK(error("cluster.fabric: 5%")
            .find("spread.cluster.fabric: expected a number at that path, found a mapping") !=
        std::string::npos);
  CHECK(error("strategy.kind: 5%").find("expected a number at that path, found 'data_parallel'") !=
        std::string::npos);
  CHECK(error("cluster.nodes.0.count: 20%").find("cannot be run with so much less or more of it") !=
        std::string::npos);
  CHECK(error("training.batch_per_device: 20%").find("cannot be read with so much less or more of it") !=
        std::string::npos);
}
