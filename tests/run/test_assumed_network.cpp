// SPDX-License-Identifier: MIT
// What hosts speak where nobody says it: laws on random clusters.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/lowering/service_rule.h"
#include "sim/run/evaluate.h"
#include "tests/run/searches.h"
#include "topologies/catalog.h"

using namespace convoy;
using lab::Dice;

namespace {

RunResult result_of(const std::string& model, const std::string& cluster, const std::string& strategy,
                    const std::string& training = "{batch_per_device: 4}") {
  const searches::Written written(searches::experiment(model, cluster, strategy, training));
  Preparer preparer(*written);
  return simulate(preparer.prepare(0), false).result;
}

/// 2 to 4 hosts on one switch, `protocol` being the key with its comma, or "".
struct Hosts {
  int nodes, devices;
  double bandwidth_Gbps;
  std::string device, more;

  std::string over(const std::string& protocol) const {
    return fmt::format(
        "{{nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: {}Gbps, latency: "
        "20us{}}}, servers: {{box: {{devices: [{{device: {}, count: {}}}], interconnect: {{kind: pcie, "
        "bandwidth: 12GB/s, latency: 5us}}}}}}{}}}",
        nodes, bandwidth_Gbps, protocol, device, devices, more);
  }
};

const std::string exact_device =
    ", devices: {exact: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}";

Hosts random_hosts(Dice& dice, const std::string& device) {
  return {dice.between(2, 4), dice.between(1, 2), dice.one_of<double>({1, 10, 100}), device,
          device == "exact" ? exact_device : ""};
}

std::string random_strategy(Dice& dice) {
  return dice.coin() ? lab::random_all_reduce(dice, "auto") : lab::random_parameter_server(dice);
}

std::size_t assumptions_in(const RunResult& result) {
  return static_cast<std::size_t>(
      std::count_if(result.warnings.begin(), result.warnings.end(),
                    [](const std::string& text) { return text.find("is assumed") != std::string::npos; }));
}

}  // namespace

TEST_CASE(
    "what hosts of measured devices speak is assumed to be tcp, and the interval holds for no software too") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const std::string model = lab::random_model(dice), strategy = random_strategy(dice);
    const Hosts hosts =
        random_hosts(dice, dice.one_of<std::string>({"v100-sxm2-16gb", "k80", "b200-sxm-180gb"}));
    CAPTURE(strategy);
    const RunResult assumed = result_of(model, hosts.over(""), strategy),
                    tcp = result_of(model, hosts.over(", protocol: tcp"), strategy),
                    ideal = result_of(model, hosts.over(", protocol: ideal"), strategy);
    CHECK(assumed.step_time_s == tcp.step_time_s);
    CHECK(assumed.software.transport == tcp.software.transport);
    CHECK(assumed.software.transport_assumed);
    CHECK(assumptions_in(assumed) == 1);
    CHECK_FALSE(tcp.software.transport_assumed);
    CHECK(assumptions_in(tcp) == 0);
    CHECK(assumptions_in(ideal) == 0);
    REQUIRE(assumed.interval);
    REQUIRE(tcp.interval);
    REQUIRE(ideal.interval);
    const auto least = [](const RunResult& run) { return run.interval->step_time_s[0]; };
    const auto most = [](const RunResult& run) { return run.interval->step_time_s[1]; };
    CHECK(least(assumed) == std::min(least(tcp), least(ideal)));
    CHECK(most(assumed) == std::max(most(tcp), most(ideal)));
    CHECK(assumed.interval->throughput_images_per_s[1] ==
          std::max(tcp.interval->throughput_images_per_s[1], ideal.interval->throughput_images_per_s[1]));
  }
}

TEST_CASE("hosts of exact devices are on an ideal network where nobody says another, and nothing is open") {
  for (unsigned seed = 21; seed <= 32; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const std::string model = lab::random_model(dice), strategy = random_strategy(dice);
    const Hosts hosts = random_hosts(dice, "exact");
    const RunResult untold = result_of(model, hosts.over(""), strategy),
                    ideal = result_of(model, hosts.over(", protocol: ideal"), strategy);
    CHECK(untold.step_time_s == ideal.step_time_s);
    CHECK(untold.software == ideal.software);
    CHECK_FALSE(untold.software.transport_assumed);
    CHECK_FALSE(untold.interval);
    CHECK(assumptions_in(untold) == 0);
  }
}

TEST_CASE("exact devices over tcp leave their network open, with an anchor too") {
  for (unsigned seed = 41; seed <= 46; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Hosts hosts = random_hosts(dice, "exact");
    const std::string model = lab::random_model(dice), strategy = "{kind: data_parallel, sync: all_reduce}";
    for (const std::string training : {"{batch_per_device: 4, precision: fp32}",
                                       "{batch_per_device: 4, precision: fp32, anchor: {images_per_s: 900, "
                                       "batch: 4}}"}) {
      CAPTURE(training);
      const RunResult run = result_of(model, hosts.over(", protocol: tcp"), strategy, training);
      REQUIRE(run.interval);
      // Its computing is given: what is waited for is all that may be longer, with what devices add.
      const double open_s = run.interval->step_time_s[1] - run.step_time_s;
      CHECK(open_s > 0.01 * run.exposed_comm_s);
      CHECK_FALSE(result_of(model, hosts.over(", protocol: ideal"), strategy, training).interval);
    }
  }
}

TEST_CASE("workers without a common step may meet at servers more or less, says the interval of every mode") {
  for (const std::string mode : {"mode: async", "mode: ssp, staleness: 2", "backup_workers: 1"}) {
    CAPTURE(mode);
    int wider = 0;
    for (unsigned seed = 61; seed <= 68; ++seed) {
      CAPTURE(seed);
      Dice dice(seed);
      const Hosts hosts = random_hosts(dice, "v100-sxm2-16gb");
      const searches::Written written(searches::experiment(
          lab::random_model(dice), hosts.over(", protocol: tcp"),
          fmt::format("{{kind: data_parallel, sync: parameter_server, {}, transport: zmq}}", mode),
          "{batch_per_device: 4}"));
      Preparer preparer(*written);
      PreparedRun run = preparer.prepare(0);
      const RunResult in_order = simulate(run, false).result;
      run.plan = shared_fairly(std::move(run.plan));
      const RunResult meeting = simulate(run, false).result;
      REQUIRE(in_order.interval);
      REQUIRE(meeting.interval);
      CHECK(in_order.interval->step_time_s[0] <= meeting.interval->step_time_s[0]);
      CHECK(in_order.interval->step_time_s[1] >= meeting.interval->step_time_s[1]);
      CHECK(in_order.interval->step_time_s[0] <= in_order.step_time_s);
      CHECK(in_order.interval->step_time_s[1] >= in_order.step_time_s);
      if (std::abs(meeting.step_time_s / in_order.step_time_s - 1) > 0.02) ++wider;
    }
    MESSAGE(mode << ": " << wider << " of 8 differ by more than 2 %");
    CHECK(wider > 0);
  }
}

TEST_CASE("servers of the catalogue whose protocol it assumes say so where there are several") {
  Dice dice(51);
  const std::string model = lab::random_model(dice), strategy = "{kind: data_parallel, sync: all_reduce}";
  for (const std::string& server : server_names()) {
    const ServerSpec spec = load_server(server, {});
    if (dice.between(0, 11) != 0) continue;
    CAPTURE(server);
    const Source* source = find_source(spec.sources, "fabric.protocol");
    REQUIRE(source);
    const auto on = [&](int nodes) {
      return result_of(model, fmt::format("{{server: {}, nodes: {}}}", server, nodes), strategy);
    };
    const RunResult one = on(1), two = on(2);
    CHECK_FALSE(one.software.transport_assumed);
    CHECK(assumptions_in(one) == 0);
    CHECK(two.software.transport_assumed == (source->grade == Grade::assumed));
    CHECK(assumptions_in(two) == (source->grade == Grade::assumed ? 1 : 0));
    // What is known better is written, and nothing is assumed any more.
    const RunResult told = result_of(
        model, fmt::format("{{server: {{base: {}, fabric.protocol: tcp}}, nodes: 2}}", server), strategy);
    CHECK_FALSE(told.software.transport_assumed);
  }
}

TEST_CASE("warnings: what auto leaves out among many devices, and an anchor that cannot be one device's") {
  const auto warned = [](const RunResult& result, const std::string& of) {
    return std::any_of(result.warnings.begin(), result.warnings.end(),
                       [&](const std::string& text) { return text.starts_with(of); });
  };
  const std::string model =
      "{name: net, input: [3, 8, 8], layers: [{name: flat, kind: flatten}, {name: fc, kind: linear, "
      "out_features: 10}]}";
  for (const int nodes : {1024, 1025})
    for (const std::string algorithm : {"auto", "ring"}) {
      CAPTURE(nodes);
      CAPTURE(algorithm);
      const RunResult result =
          result_of(model, Hosts{nodes, 1, 100, "exact", exact_device}.over(", protocol: ideal"),
                    "{kind: data_parallel, sync: all_reduce, algorithm: " + algorithm + "}");
      CHECK(warned(result, "algorithm: auto leaves double_binary_tree out") ==
            (nodes > 1024 && algorithm == "auto"));
    }
  const std::string cluster = Hosts{2, 1, 100, "v100-sxm2-16gb", ""}.over(", protocol: rdma");
  const double known = result_of(model, cluster, "{kind: single}").throughput_images_per_s;
  for (const double times : {0.1, 0.5, 2.0, 10.0}) {
    CAPTURE(times);
    const RunResult result = result_of(
        model, cluster, "{kind: single}",
        fmt::format("{{batch_per_device: 4, anchor: {{images_per_s: {}, batch: 4}}}}", times * known));
    CHECK(warned(result, "training.anchor is ") == (times < 0.2 || times > 5));
  }
}

TEST_CASE("a network with layers of a kind that nobody measured has a wider interval, and says why") {
  // The same products, of an image and of a volume of depth 1.
  const auto run = [](const std::string& kind, const std::string& input, const std::string& device) {
    return result_of(
        fmt::format("{{name: n, input: {1}, layers: [{{name: a, kind: {0}, out_channels: 64, kernel: "
                    "1}}, {{name: b, kind: {0}, out_channels: 64, kernel: 1}}]}}",
                    kind, input),
        Hosts{1, 1, 10, device, device == "exact" ? exact_device : ""}.over(""), "{kind: single}",
        "{batch_per_device: 64}");
  };
  const auto width = [](const RunResult& result) {
    return result.interval ? result.interval->step_time_s[1] / result.interval->step_time_s[0] : 1;
  };
  const RunResult image = run("conv2d", "[64, 56, 56]", "v100-sxm2-16gb");
  const RunResult volume = run("conv3d", "[64, 1, 56, 56]", "v100-sxm2-16gb");
  CHECK(width(image) > 1);
  CHECK(width(volume) > 1.1 * width(image));
  CHECK(width(run("conv3d", "[64, 1, 56, 56]", "exact")) == 1);
}
