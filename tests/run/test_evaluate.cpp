// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "sim/costs/residuals.h"
#include "sim/run/evaluate.h"

using namespace convoy;

namespace {

/// Two devices of 10 W idle and 110 W busy, 1000 bytes of memory, in two hosts of 50 W at 3 USD/h, and a step
/// of 2 s.
struct Case {
  PreparedRun run{"3", {}, nullptr, {}, CostModel(Precision::fp32), {}, "some strategy", std::nullopt};
  ReplayResult replayed;

  Case() {
    TrainingGraph graph;
    graph.model.name = "toy";
    run.graph = std::make_shared<const TrainingGraph>(graph);
    DeviceType type;
    type.name = "card";
    type.memory_bytes = 1000;
    type.idle_power_w = 10;
    type.peak_power_w = 110;
    HostType host;
    host.server = "box";
    host.price_usd_per_h = 3;
    host.host_power_w = 50;
    run.machine.name = "lab";
    run.machine.device_types = {type};
    run.machine.host_types = {host};
    run.machine.hosts = {{"a", 0, 0, 1}, {"b", 0, 1, 1}};
    run.machine.devices = {{"a", 0, 0, 1.0}, {"b", 0, 1, 1.0}};
    run.machine.links = {{"a.nic.up", 100, 0, 0}};
    run.machine.port_count = 1;
    run.plan.images = 64;
    replayed.step_time_s = 2;
    replayed.endpoints.resize(4);
    replayed.links = {{50, 1}};
    replayed.port_busy_s = {1};
    replayed.comm_bytes = 50;
    EndpointUsage& a = replayed.endpoints[0];
    EndpointUsage& b = replayed.endpoints[1];
    a.compute_s = 0.5, a.exposed_comm_s = 0.25, a.end_s = 2, a.peak_memory_bytes = 400;
    b.compute_s = 1.5, b.exposed_comm_s = 0.5, b.end_s = 1.9, b.peak_memory_bytes = 700;
  }
};

}  // namespace

TEST_CASE("evaluate: step, throughput, the critical device and what it did") {
  const Case c;
  const RunResult result = evaluate(c.run, c.replayed);
  CHECK(result.id == "3");
  CHECK(result.model == "toy");
  CHECK(result.cluster == "lab");
  CHECK(result.servers == "box");
  CHECK(result.device_type == "card");
  CHECK(result.devices == 2);
  CHECK(result.throughput_images_per_s == 32);
  // a ends last: 0.5 + 0.25 and the rest of 2 s
  CHECK(result.compute_s == 0.5);
  CHECK(result.exposed_comm_s == 0.25);
  CHECK(result.idle_s == 1.25);
  CHECK(result.load_imbalance == 1.5);  // 1.5 s against the mean of 1 s
  CHECK(result.per_link[0].utilization == 0.25);
}

TEST_CASE("evaluate: of devices that end together the busiest is critical, and of those the first") {
  Case c;
  c.replayed.endpoints[1].end_s = 2;
  CHECK(evaluate(c.run, c.replayed).compute_s == 1.5);
  c.replayed.endpoints[0].compute_s = 1.5;
  CHECK(evaluate(c.run, c.replayed).exposed_comm_s == 0.25);
}

TEST_CASE("evaluate: energy of devices and hosts") {
  const Case c;
  const RunResult result = evaluate(c.run, c.replayed);
  CHECK(result.per_device[0].energy_j == 10 * 2 + 100 * 0.5);
  CHECK(result.per_device[1].energy_j == 10 * 2 + 100 * 1.5);
  CHECK(result.energy_j == 70 + 170 + 2 * 50 * 2);
}

TEST_CASE("evaluate: memory of the fullest device, and whether all fit") {
  Case c;
  CHECK(evaluate(c.run, c.replayed).peak_memory_bytes == 700);
  CHECK(evaluate(c.run, c.replayed).fits);
  // A device of its own type with little memory is fuller with less in it.
  c.run.machine.device_types.push_back(c.run.machine.device_types[0]);
  c.run.machine.device_types[1].memory_bytes = 300;
  c.run.machine.devices[0].type = 1;
  CHECK(evaluate(c.run, c.replayed).peak_memory_bytes == 400);
  CHECK_FALSE(evaluate(c.run, c.replayed).fits);
}

TEST_CASE("evaluate: time and cost of an epoch where data set and prices are known") {
  Case c;
  CHECK_FALSE(evaluate(c.run, c.replayed).epoch_time_s);
  c.run.samples = 64'000;
  CHECK(*evaluate(c.run, c.replayed).epoch_time_s == 2000);
  CHECK(*evaluate(c.run, c.replayed).cost_usd_per_epoch ==
        doctest::Approx(2 * 3 * 2000 / 3600.0).epsilon(1e-15));
  c.run.machine.host_types[0].price_usd_per_h = 0;
  CHECK(evaluate(c.run, c.replayed).epoch_time_s);
  CHECK_FALSE(evaluate(c.run, c.replayed).cost_usd_per_epoch);
}

TEST_CASE("evaluate: stages of a pipeline with what their devices did, and the share of the step they wait") {
  Case c;
  CHECK_FALSE(evaluate(c.run, c.replayed).bubble_fraction.has_value());
  c.run.plan.stages = {{{0}, {"conv"}}, {{1}, {"flat", "fc"}}};
  const RunResult result = evaluate(c.run, c.replayed);
  CHECK(*result.bubble_fraction == 0.5);  // 0.5 s and 1.5 s of 2 s
  CHECK(result.stages ==
        std::vector<StageResult>{{"a", {"a"}, {"conv"}, 0.5, 400}, {"b", {"b"}, {"flat", "fc"}, 1.5, 700}});
  c.run.plan.stages = {{{0, 1}, {"conv", "flat", "fc"}}};  // replicas: the slowest, and the fullest
  CHECK(evaluate(c.run, c.replayed).stages ==
        std::vector<StageResult>{{"a", {"a", "b"}, {"conv", "flat", "fc"}, 1.5, 700}});
}

TEST_CASE("the interval of a step holds 80 % of draws of the compute time, what it waits for aside") {
  Case c;
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().evidence_rows = 3;
  for (EndpointUsage& usage : c.replayed.endpoints) usage = {};
  for (std::size_t d = 0; d < 2; ++d)
    c.replayed.endpoints[d].compute_s = 1.5, c.replayed.endpoints[d].end_s = 2;
  const RunResult result = evaluate(c.run, c.replayed);
  REQUIRE(result.interval);
  CHECK(result.warnings.empty());
  const double spread = std::hypot(0.1, residual_spread(residual_kind({}, 32, Precision::fp32)));
  std::mt19937 random(7);
  std::normal_distribution<double> deviation(0, spread);
  constexpr int draws = 200'000;
  int below = 0, above = 0;
  for (int i = 0; i < draws; ++i) {
    const double step_s = 0.5 + 1.5 * std::exp(deviation(random));
    below += step_s < result.interval->step_time_s[0];
    above += step_s > result.interval->step_time_s[1];
  }
  CHECK(below / static_cast<double>(draws) == doctest::Approx(0.1).epsilon(0.03));
  CHECK(above / static_cast<double>(draws) == doctest::Approx(0.1).epsilon(0.03));
  CHECK(result.interval->throughput_images_per_s[0] ==
        doctest::Approx(64 / result.interval->step_time_s[1]));
  CHECK(result.interval->throughput_images_per_s[1] ==
        doctest::Approx(64 / result.interval->step_time_s[0]));
}

TEST_CASE("a device without published figures is named in a line, an exact one has no interval") {
  Case c;
  CHECK_FALSE(evaluate(c.run, c.replayed).interval);
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().generation = "ada";
  const RunResult result = evaluate(c.run, c.replayed);
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0].find("card") != std::string::npos);
  CHECK(result.warnings[0].find("ada") != std::string::npos);
}
