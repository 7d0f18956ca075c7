// SPDX-License-Identifier: MIT
// What convoy doctor says: laws on random experiments, held against experiments that are changed by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <sstream>

#include "sim/base/quantity.h"
#include "sim/costs/residuals.h"
#include "sim/run/sweep.h"
#include "sim/studies/doctor.h"
#include "tests/laws/random_experiment.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;
using lab::Dice;

namespace {

Experiment experiment_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  ::signal(SIGPIPE, SIG_IGN);
  return Experiment::parse(text, "doctor.yaml", settings);
}

RunResult result_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  const Experiment experiment = experiment_of(text, settings);
  Preparer preparer(experiment);
  return simulate(preparer.prepare(0), false).result;
}

DoctorRun diagnosed(const std::string& text, const std::vector<std::string>& settings = {}) {
  const Experiment experiment = experiment_of(text, settings);
  Preparer preparer(experiment);
  return diagnose_run(preparer.prepare(0));
}

const DoctorInput& input_of(const DoctorRun& run, const std::string& key) {
  const auto found = std::find_if(run.inputs.begin(), run.inputs.end(),
                                  [&](const DoctorInput& input) { return input.key == key; });
  REQUIRE_MESSAGE(found != run.inputs.end(), key);
  return *found;
}

/// 2 to 4 hosts on one switch.
struct Hosts {
  int nodes = 2;
  std::string device = "v100-sxm2-16gb", fabric = "bandwidth: 10Gbps, latency: 20us", vcpus = "", node = "",
              more = "";
  std::string training = "batch_per_device: 8",
              strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
  std::string model = "resnet18";

  std::string text() const {
    return fmt::format(
        "experiment: e\nmodel: {}\ntraining: {{{}}}\nstrategy: {}\ncluster:\n"
        "  nodes: [{{name: n, count: {}, server: box{}}}]\n  fabric: {{kind: switch, {}}}\n"
        "  servers: {{box: {{devices: [{{device: {}, count: 1}}], interconnect: {{kind: none}}{}}}}}\n"
        "  devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, "
        "efficiency: 1.0}}}}\n{}",
        model, training, strategy, nodes, node, fabric, device, vcpus, more);
  }
};

Hosts random_hosts(Dice& dice) {
  Hosts hosts;
  hosts.nodes = dice.between(2, 4);
  hosts.device = dice.one_of<std::string>({"v100-sxm2-16gb", "k80", "b200-sxm-180gb", "a100-sxm4-40gb"});
  hosts.fabric = fmt::format("bandwidth: {}Gbps, latency: 20us{}", dice.one_of<int>({1, 10, 100}),
                             dice.one_of<std::string>({"", ", protocol: tcp", ", protocol: rdma"}));
  hosts.training = fmt::format("batch_per_device: {}", dice.one_of<int>({1, 8, 64}));
  hosts.model = lab::random_model(dice);
  hosts.strategy = dice.coin() ? lab::random_all_reduce(dice, "auto") : lab::random_parameter_server(dice);
  if (dice.coin()) hosts.more = "spread: {cluster.fabric.bandwidth: 30%}\n";
  return hosts;
}

/// Half of what lies between the ends of an interval of 80 %, in standard deviations of the logarithm.
double spread_of(const std::optional<IntervalResult>& interval) {
  return interval ? std::log(interval->step_time_s[1] / interval->step_time_s[0]) / (2 * quantile_80) : 0;
}

}  // namespace

TEST_CASE("doctor: shares are sorted and add up to 1, and the interval is the run's") {
  for (unsigned seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const std::string text = random_hosts(dice).text();
    CAPTURE(text);
    const Experiment experiment = experiment_of(text);
    const Results results = simulate_sweep(experiment, 1);
    const Diagnosis diagnosis = diagnose(experiment, 1, [](std::size_t, std::size_t) {});
    REQUIRE(diagnosis.runs.size() == 1);
    const DoctorRun& run = diagnosis.runs[0];
    CHECK(run.step_time_s == results.runs[0].step_time_s);
    CHECK(run.interval == results.runs[0].interval);
    double sum = 0, variance = 0;
    for (std::size_t i = 0; i < run.inputs.size(); ++i) {
      const DoctorInput& input = run.inputs[i];
      sum += input.variance_share;
      const double spread = std::log(input.step_time_s[1] / input.step_time_s[0]) / (2 * quantile_80);
      variance += spread * spread;
      if (i > 0) CHECK(input.variance_share <= run.inputs[i - 1].variance_share);
      CHECK(input.narrows_to <= 1 + 1e-12);
      CHECK_FALSE(input.measure.empty());
      CHECK_FALSE(input.source.empty());
    }
    CHECK(sum == approx(1.0));
    CHECK(run.spread == approx(std::sqrt(variance)));
  }
}

TEST_CASE("doctor: a number moved by hand in the experiment gives the step that doctor used") {
  for (unsigned seed = 21; seed <= 26; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Hosts hosts = random_hosts(dice);
    hosts.device = "v100-sxm2-16gb";
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    hosts.node = ", speed: 1.0";
    hosts.more = "spread: {cluster.fabric.bandwidth: 30%, cluster.fabric.latency: 50%}\n";
    const std::string text = hosts.text();
    const DoctorRun run = diagnosed(text);
    const std::string alone = text.substr(0, text.find("spread:"));
    const auto step_with = [&](const std::vector<std::string>& settings) {
      return result_of(alone, settings).step_time_s;
    };
    const double bandwidth = std::stod(hosts.fabric.substr(hosts.fabric.find(' ') + 1));
    for (const int end : {0, 1}) {
      CAPTURE(end);
      const double sign = end == 0 ? -1 : 1;
      const auto factor = [&](double spread) { return std::exp(sign * quantile_80 * spread); };
      CHECK(input_of(run, "cluster.fabric.bandwidth").step_time_s[end] ==
            approx(step_with(
                {fmt::format("cluster.fabric.bandwidth={}Gbps", bandwidth * factor(std::log(1.3)))})));
      CHECK(input_of(run, "cluster.fabric.latency").step_time_s[end] ==
            approx(step_with({fmt::format("cluster.fabric.latency={}us", 20 * factor(std::log(1.5)))})));
      const DoctorInput& host = input_of(run, "cluster.servers.box.host.issue_factor");
      CHECK(host.step_time_s[end] == approx(step_with({fmt::format("cluster.servers.box.host.issue_factor={}",
                                                                   factor(*host.spread))})));
      // A fit's errors are of whole steps of a device, with its host.
      const DoctorInput& kernels = input_of(run, "training.anchor");
      CHECK(kernels.step_time_s[end] ==
            approx(step_with(
                {fmt::format("cluster.nodes.0.speed={}", 1 / factor(*kernels.spread)),
                 fmt::format("cluster.servers.box.host.issue_factor={}", factor(*kernels.spread))})));
    }
  }
}

TEST_CASE("doctor: messages that take longer are waited for as long as the closed form says") {
  // One tensor of 100 MB over four hosts, after the backward pass: a ring's 6 parts of 25 MB.
  Hosts hosts;
  hosts.nodes = 4;
  hosts.device = "ideal";
  hosts.model =
      "{name: toy, input: [3, 32, 32], layers: [{name: body, kind: custom, forward_flops: 1e9, "
      "backward_flops: 2e9, "
      "parameters: 25000000, output: [10], memory_bytes: 0}]}";
  hosts.training = "batch_per_device: 4, precision: fp32";
  // NCCL's steps have times of their own instead of their routes' (Round::latency_s).
  for (const std::string algorithm : {"ring", "nccl"})
    for (const std::string latency : {"0us", "500us"}) {
      CAPTURE(algorithm);
      CAPTURE(latency);
      hosts.fabric = "bandwidth: 10Gbps, latency: " + latency + ", protocol: tcp";
      hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: " + algorithm +
                       ", overlap: false, bucket: 1GB}";
      const RunResult run = result_of(hosts.text());
      const DoctorInput messages = input_of(diagnosed(hosts.text()), "cluster.fabric");
      REQUIRE(run.exposed_comm_s > 0.01);
      for (const int end : {0, 1}) {
        const double factor = std::exp((end == 0 ? -1 : 1) * quantile_80 * comm_spread(CommKind::tcp));
        CHECK(messages.step_time_s[end] == approx(run.step_time_s + (factor - 1) * run.exposed_comm_s));
      }
    }
}

TEST_CASE("doctor: the variances that it sums up are those of the run's interval") {
  for (unsigned seed = 31; seed <= 46; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Hosts hosts = random_hosts(dice);
    hosts.more.clear();
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    if (hosts.fabric.find("protocol") == std::string::npos) hosts.fabric += ", protocol: tcp";
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    // The run's interval goes by shares of its step, doctor by steps simulated again.
    CHECK(std::abs(run.spread / spread_of(run.interval) - 1) < 0.15);
  }
}

TEST_CASE(
    "doctor: so they are where devices wait for parameter servers, for sums inside their hosts, or for the "
    "stages of a pipeline before theirs") {
  // The step waits for computing or for messages, so that what the two are off by does not add up.
  struct Case {
    const char *device, *model;
    int nodes;
    const char *network, *strategy;
  };
  const char* const tcp = "bandwidth: 10Gbps, latency: 20us, protocol: tcp";
  const char* const rdma = "bandwidth: 100Gbps, latency: 20us, protocol: rdma";
  for (const Case& each :
       {Case{"k80", "resnet18", 4, tcp, "kind: data_parallel, sync: parameter_server"},
        Case{"k80", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, placement: colocated, sharding: even"},
        Case{"v100-sxm2-16gb", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, overlap: false, pull: after_all"},
        Case{"v100-sxm2-16gb", "mobilenet_v2", 4, tcp,
             "kind: data_parallel, sync: parameter_server, overlap: false, local_aggregation: true"},
        Case{"b200-sxm-180gb", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, sharding: even, overlap: false, "
             "local_aggregation: true"},
        Case{"k80", "resnet18", 2, rdma, "kind: pipeline, stages: 2, micro_batches: 1"},
        Case{"v100-sxm2-16gb", "resnet18", 4, rdma, "kind: pipeline, stages: 4, micro_batches: 4"}}) {
    Hosts hosts;
    hosts.device = each.device;
    hosts.model = each.model;
    hosts.nodes = each.nodes;
    hosts.fabric = each.network;
    hosts.training = "global_batch: 128";
    hosts.strategy = fmt::format("{{{}}}", each.strategy);
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    CAPTURE(run.spread);
    CHECK(std::abs(run.spread / spread_of(run.interval) - 1) < 0.15);
  }
}

TEST_CASE("doctor: where its advice is followed, the spread is as narrow as it says") {
  for (unsigned seed = 51; seed <= 58; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Hosts hosts = random_hosts(dice);
    hosts.device = dice.one_of<std::string>({"v100-sxm2-16gb", "k80", "b200-sxm-180gb"});
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    hosts.fabric = "bandwidth: 100Gbps, latency: 20us, protocol: rdma";
    hosts.training = "batch_per_device: 64";
    hosts.more.clear();
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    const DoctorInput& kernels = input_of(run, "training.anchor");
    const std::string images_per_s = kernels.value.substr(0, kernels.value.find(' '));
    const DoctorRun anchored =
        diagnosed(text, {fmt::format("training.anchor={{images_per_s: {}, batch: 64}}", images_per_s)});
    CHECK(std::abs(anchored.spread / run.spread / kernels.narrows_to - 1) < 0.05);
    const DoctorRun told = diagnosed(text, {"cluster.servers.box.host.issue_factor=1"});
    CHECK(std::abs(told.spread / run.spread /
                       input_of(run, "cluster.servers.box.host.issue_factor").narrows_to -
                   1) < 0.05);
  }
}

TEST_CASE("doctor: an anchor tells the less of a step, the less alike their batches are") {
  Hosts hosts;
  hosts.nodes = 1;
  const auto interval = [&](int batch, const std::string& anchor) {
    hosts.training = fmt::format("batch_per_device: {}{}", batch, anchor);
    return spread_of(result_of(hosts.text()).interval);
  };
  const std::string anchor = ", anchor: {images_per_s: 1000, batch: 64}";
  // Repeated measurements differ by 3 %; steps of the same set-up with other batches by more (anchors.yaml).
  CHECK(interval(64, anchor) == doctest::Approx(0.03).epsilon(0.01));
  CHECK(interval(32, anchor) == doctest::Approx(anchored_spread(32, 64)).epsilon(0.01));
  CHECK(interval(32, anchor) == doctest::Approx(interval(128, anchor)).epsilon(0.01));
  CHECK(interval(16, anchor) > 1.3 * interval(32, anchor));
  CHECK(interval(1, anchor) <= interval(1, "") * (1 + 1e-9));  // never less sure than without
}

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
  Hosts hosts;
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
  Hosts hosts;
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
    Hosts hosts;
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

TEST_CASE("doctor: the chance that a choice flips is that of normal errors of logarithms") {
  const auto below = [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; };
  CHECK(chance_of_flip({100, 0.1}, {}) == approx(0.0));
  for (const double rival : {80.0, 100.0, 150.0})
    for (const double spread : {0.0, 0.05, 0.3})
      CHECK(std::abs(chance_of_flip({100, 0.1}, {{rival, spread}}) -
                     below(std::log(100 / rival) / std::hypot(0.1, spread))) < 1e-3);
  std::mt19937 engine(3);
  std::normal_distribution<double> normal;
  const std::vector<UncertainValue> rivals{{110, 0.1}, {120, 0.2}, {200, 0.05}};
  int flips = 0;
  constexpr int draws = 40'000;
  for (int i = 0; i < draws; ++i) {
    const double choice = 100 * std::exp(0.15 * normal(engine));
    bool flipped = false;
    for (const UncertainValue& rival : rivals)
      flipped = rival.value * std::exp(rival.spread * normal(engine)) < choice || flipped;
    flips += flipped;
  }
  CHECK(std::abs(chance_of_flip({100, 0.15}, rivals) - static_cast<double>(flips) / draws) < 0.01);
}

TEST_CASE("doctor: a value of nothing is the least for sure, and time x cost errs twice as the time does") {
  CHECK(chance_of_flip({0, 0.1}, {{100, 0.1}, {0, 0.1}}) == 0);
  CHECK(chance_of_flip({100, 0.1}, {{200, 0.1}, {0, 0.1}}) == 1);
  const auto spec = [](const std::string& plan) {
    return plans::spec_of("{epochs: 3}", "{batch_per_device: [64], " + plan + "}");
  };
  const auto silent = [](std::size_t, std::size_t) {};
  const std::string own = "{name: mine, base: workstation-2-rtx-3090, price: 0USD/h}";
  const Diagnosis free = diagnose_plan(spec("servers: [" + own + ", aws-p3.2xlarge]"), 1, silent);
  CHECK(free.flip->chance == 0);
  std::ostringstream out;
  write_doctor(free, out);  // no number is NaN
  const PlanSpec both = spec("objective: front, servers: [gcp-n1-standard-8-k80, aws-p3.2xlarge]");
  const PlanAnswer answer = plans::answer_of(both, false);
  const auto uncertain = [](const CandidateResultOfPlan& candidate) {
    const auto& [low, high] = candidate.time_interval;
    return UncertainValue{candidate.figures.time_s * candidate.figures.cost_usd,
                          2 * std::log(high / low) / (2 * quantile_80)};
  };
  REQUIRE(answer.runners_up.size() == 1);
  CHECK(diagnose_plan(both, 1, silent).flip->chance ==
        approx(chance_of_flip(uncertain(*answer.choice), {uncertain(answer.runners_up[0])})));
}

TEST_CASE("doctor: scenarios of a plan are not simulated, and a price table is for plans only") {
  const std::string plan = "servers: [aws-p3.2xlarge], batch_per_device: [64]";
  // This one cannot be planned.
  const PlanSpec spec = plans::spec_of(
      "{epochs: 3}", "{" + plan + ", scenarios: [{name: none, set: {plan.servers: [dgx1-v100]}}]}");
  CHECK(diagnose_plan(spec, 1, [](std::size_t, std::size_t) {}).runs.size() == 1);
  CHECK_THROWS_AS(
      diagnose_file(experiment_of(Hosts().text()), "prices.csv", 1, [](std::size_t, std::size_t) {}),
      InputError);
}

TEST_CASE("doctor: lines to paste train what the experiment trains, where they can") {
  const auto measured = [](const std::string& model, const std::string& training,
                           const std::string& device = "v100-sxm2-16gb") {
    Hosts hosts;
    hosts.nodes = 1;
    hosts.model = model;
    hosts.training = "batch_per_device: 8" + training;
    hosts.device = device;
    return input_of(diagnosed(hosts.text()), "training.anchor").measure;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string plain = measured("resnet18", "");
  CHECK(has(plain, "get_model('resnet18').cuda().to(memory_format=torch.contiguous_format)"));
  CHECK(has(plain, "torch.optim.SGD(net.parameters(), lr=0.01)\n"));
  CHECK_FALSE(has(plain, "torch.compile"));
  CHECK(has(measured("resnet18", ", execution: compiled"), "\nnet = torch.compile(net)\n"));
  CHECK(has(measured("resnet18", ", layout: nhwc"), "torch.channels_last)"));
  CHECK(has(measured("resnet18", ", optimizer: momentum"), "SGD(net.parameters(), lr=0.01, momentum=0.9)"));
  CHECK(has(measured("resnet18", ", optimizer: adam"), "Adam(net.parameters())"));
  CHECK(has(measured("googlenet", ""), "getattr(out, 'logits', out)"));
  for (const char* model :
       {"lenet5", "inception_v4", "wrn_28_10",
        "{name: toy, input: [3, 32, 32], layers: [{name: c, kind: conv2d, out_channels: 8, kernel: 3}]}"})
    CHECK_FALSE(has(measured(model, ""), "python3"));
  CHECK_FALSE(has(measured("resnet18", "", "xeon-platinum-8480"), "python3"));
}

TEST_CASE("doctor: a loader is measured by lines of its own library only") {
  const auto measured = [](const std::string& library) {
    Hosts hosts;
    hosts.nodes = 1;
    hosts.vcpus = ", vcpus: 4";
    hosts.training =
        fmt::format("batch_per_device: 8, input: {{kind: jpeg, library: {}, cached: true}}", library);
    return input_of(diagnosed(hosts.text()), "training.input.core_images_per_s").measure;
  };
  for (const char* library : {"pil", "pillow_simd"})
    CHECK(measured(library).starts_with("DATA is a folder of images by class:\npython3"));
  for (const char* library : {"dali_cpu", "dali_gpu", "tf_data"})
    CHECK(measured(library).find("python3") == std::string::npos);
}

TEST_CASE("doctor: its text tells every run and all that is open of it, each measurement once") {
  Hosts hosts;
  hosts.more = "sweep: {training.batch_per_device: [8, 16, 32]}\n";
  const Diagnosis diagnosis = diagnose(experiment_of(hosts.text()), 1, [](std::size_t, std::size_t) {});
  REQUIRE(diagnosis.runs.size() == 3);
  const std::string text = doctor_text(diagnosis);
  std::set<std::string> measurements;
  std::size_t at = 0;
  for (const DoctorRun& run : diagnosis.runs) {
    at = text.find(
        fmt::format("\nrun {}: training.batch_per_device: {}, a step takes {}, {} to {} at 80 %\n", run.id,
                    run.point.front().second.scalar, format_time(run.step_time_s),
                    format_time(run.interval->step_time_s[0]), format_time(run.interval->step_time_s[1])),
        at);
    REQUIRE(at != std::string::npos);
    REQUIRE(run.inputs.size() > 1);
    for (const DoctorInput& input : run.inputs) {
      at = text.find(fmt::format("  {}: {} (", input.key, input.value), at);
      REQUIRE(at != std::string::npos);
      if (input.variance_share >= 0.01) measurements.insert(input.measure);
    }
  }
  for (const std::string& measurement : measurements) {
    const std::size_t first = text.find("\n" + measurement + "\n");
    REQUIRE(first != std::string::npos);
    CHECK(text.find("\n" + measurement + "\n", first + 1) == std::string::npos);
  }
}

TEST_CASE("doctor: an anchor has the images that a device works on") {
  const auto batch = [](const std::string& strategy, const std::string& training, const std::string& images) {
    Hosts hosts;
    hosts.nodes = 4;
    hosts.strategy = strategy;
    hosts.training = training;
    const std::string measure = input_of(diagnosed(hosts.text()), "training.anchor").measure;
    return measure.find("batch: " + images + "}") != std::string::npos;
  };
  CHECK(batch("{kind: single}", "batch_per_device: 64", "64"));
  CHECK(batch("{kind: data_parallel, sync: all_reduce, algorithm: ring}", "batch_per_device: 64", "64"));
  CHECK(batch("{kind: pipeline, stages: 4, micro_batches: 4, schedule: gpipe, partition: balanced}",
              "global_batch: 64", "64"));
}

TEST_CASE("doctor: of several kinds it names the host that does not say how fast it issues") {
  const std::string text =
      "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 8}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\ncluster:\n"
      "  nodes: [{name: a, count: 1, server: told}, {name: b, count: 1, server: untold}]\n"
      "  fabric: {kind: switch, bandwidth: 10Gbps, latency: 20us, protocol: tcp}\n"
      "  servers:\n"
      "    told: {devices: [{device: v100-sxm2-16gb, count: 1}], interconnect: {kind: none}, host: "
      "{issue_factor: 1}}\n"
      "    untold: {devices: [{device: k80, count: 1}], interconnect: {kind: none}}\n";
  const DoctorRun run = diagnosed(text);
  CHECK(input_of(run, "cluster.servers.untold.host.issue_factor").variance_share >= 0);
}
