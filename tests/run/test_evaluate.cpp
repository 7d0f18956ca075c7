// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sim/costs/residuals.h"
#include "sim/plan/repetition.h"
#include "sim/run/evaluate.h"
#include "tests/run/searches.h"
#include "tests/support/approx.h"
#include "tests/support/cpu_kind.h"

using namespace convoy;

namespace {

/// Two devices of 10 W idle and 110 W busy, 1000 bytes of memory, in two hosts of 50 W at 3 USD/h, and a step
/// of 2 s.
struct Evaluated {
  PreparedRun run{nullptr, {}, CostModel(Precision::fp32), {}, {}, "some strategy", std::nullopt};
  ReplayResult replayed;

  Evaluated() {
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
    run.plan.roles = {{"worker", {0, 1}, {"compute"}, std::vector<Task>(1)}};
    replayed.step_time_s = 2;
    replayed.endpoints = {{0, 1, 2, 3}, std::vector<EndpointUsage>(4)};
    replayed.links = {{50, 1}};
    replayed.port_busy_s = {1};
    replayed.comm_bytes = 50;
    EndpointUsage& a = replayed.endpoints.of_class()[0];
    EndpointUsage& b = replayed.endpoints.of_class()[1];
    a.compute_s = 0.5, a.exposed_comm_s = 0.25, a.end_s = 2, a.peak_memory_bytes = 400;
    b.compute_s = 1.5, b.exposed_comm_s = 0.5, b.end_s = 1.9, b.peak_memory_bytes = 700;
  }
};

}  // namespace

TEST_CASE("evaluate: step, throughput, the critical device and what it did") {
  const Evaluated c;
  const RunResult result = evaluate(c.run, c.replayed);
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

TEST_CASE("evaluate: NICs that carry nothing beside others of their host that do are told") {
  Evaluated c;
  const auto add_nic = [&](std::uint32_t host, double bytes) {
    const auto port = c.run.machine.port_count++;
    for (const auto direction : {Link::Direction::up, Link::Direction::down}) {
      c.run.machine.links.push_back({"nic", 100, 0, port, LinkKind::nic, direction, host});
      c.replayed.links.push_back({direction == Link::Direction::up ? bytes : 0, 0});
    }
    c.replayed.port_busy_s.push_back(0);
  };
  add_nic(0, 10), add_nic(0, 20), add_nic(1, 30);
  CHECK(evaluate(c.run, c.replayed).warnings.empty());
  add_nic(0, 0);
  const std::string of_a = "1 of 3 NICs of a carry nothing: a device uses the one that is nearest to it";
  CHECK(evaluate(c.run, c.replayed).warnings == std::vector<std::string>{of_a});
  add_nic(1, 0);
  CHECK(evaluate(c.run, c.replayed).warnings == std::vector<std::string>{of_a + " (and so in 1 other host)"});
  // Of a host that sends nothing, none is missed.
  for (LinkUsage& use : c.replayed.links) use.bytes = 0;
  CHECK(evaluate(c.run, c.replayed).warnings.empty());
}

TEST_CASE("evaluate: parts that do not fit into the step are a mistake of ours, and are told as one") {
  const auto refused = [](auto change) {
    Evaluated c;
    change(c.replayed);
    try {
      evaluate(c.run, c.replayed);
    } catch (const std::logic_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(refused([](ReplayResult&) {}) == "nothing");
  CHECK(refused([](ReplayResult& r) { r.endpoints.of_class()[1].compute_s = 1.5 * (1 + 1e-9); }) ==
        "nothing");
  CHECK(refused([](ReplayResult& r) { r.endpoints.of_class()[1].compute_s = 2.5; }) ==
        "b computes for 2.5 s and waits for messages for 0.5 s of a step of 2 s");
  CHECK(refused([](ReplayResult& r) { r.endpoints.of_class()[0].exposed_comm_s = 1.51; }) ==
        "a computes for 0.5 s and waits for messages for 1.51 s of a step of 2 s");
  CHECK(refused([](ReplayResult& r) { r.endpoints.of_class()[0].exposed_comm_s = -0.1; }) ==
        "a computes for 0.5 s and waits for messages for -0.1 s of a step of 2 s");
  CHECK(refused([](ReplayResult& r) { r.endpoints.of_class()[0].issue_wait_s = 0.6; }) ==
        "a waits for its host for 0.6 s of 0.5 s of computing");
  CHECK(refused([](ReplayResult& r) { r.port_busy_s = {2.1}; }) ==
        "cable 0 of lab is busy for 2.1 s of a step of 2 s");
}

TEST_CASE("evaluate: of devices that end together the busiest is critical, and of those the first") {
  Evaluated c;
  c.replayed.endpoints.of_class()[1].end_s = 2;
  CHECK(evaluate(c.run, c.replayed).compute_s == 1.5);
  c.replayed.endpoints.of_class()[0].compute_s = 1.5;
  CHECK(evaluate(c.run, c.replayed).exposed_comm_s == 0.25);
}

TEST_CASE("evaluate: energy of devices and hosts") {
  const Evaluated c;
  const RunResult result = evaluate(c.run, c.replayed);
  CHECK(result.per_device[0].energy_j == 10 * 2 + 100 * 0.5);
  CHECK(result.per_device[1].energy_j == 10 * 2 + 100 * 1.5);
  CHECK(result.energy_j == 70 + 170 + 2 * 50 * 2);
}

// In each micro-batch the device computes the same, and waits for the same bytes: its joules are a line over their number.
TEST_CASE("evaluate: energy of micro-batches that a plan leaves out is that of those it lists") {
  const auto energy_j = [](int micro_batches) {
    const searches::Written written(searches::experiment(
        "{name: resnet18, input: [3, 32, 32]}",
        "{server: s, nodes: 1, servers: {s: {devices: [{device: d, count: 1}], interconnect: {kind: none}, "
        "host: "
        "{issue_factor: 0.01}}}, devices: {d: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: "
        "100GB/s, "
        "efficiency: 1.0, launch_overhead: 0us, idle_power: 30W, peak_power: 300W}}}",
        fmt::format("{{kind: data_parallel, sync: all_reduce, micro_batches: {}}}", micro_batches),
        fmt::format("{{global_batch: {}}}", 4 * micro_batches)));
    const PreparedRun run = Preparer(*written).prepare(0);
    CHECK((left_out(run.plan) != nullptr) == (micro_batches > 100));
    return evaluate(run, replay(run.plan, run.machine, run.cost, {})).energy_j;
  };
  const double two_j = energy_j(2), more_j = energy_j(12) - two_j;
  CHECK(energy_j(5002) == approx(two_j + 500 * more_j).epsilon(1e-9));
}

TEST_CASE("evaluate: memory of the fullest device, and whether all fit") {
  Evaluated c;
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
  Evaluated c;
  CHECK_FALSE(evaluate(c.run, c.replayed).epoch_time_s);
  c.run.samples = 64'000;
  CHECK(*evaluate(c.run, c.replayed).epoch_time_s == 2000);
  CHECK(*evaluate(c.run, c.replayed).cost_usd_per_epoch == approx(2 * 3 * 2000 / 3600.0).epsilon(1e-15));
  c.run.machine.host_types[0].price_usd_per_h = 0;  // a price too
  CHECK(evaluate(c.run, c.replayed).cost_usd_per_epoch == 0.0);
  c.run.machine.host_types[0].price_usd_per_h.reset();
  CHECK(evaluate(c.run, c.replayed).epoch_time_s);
  CHECK_FALSE(evaluate(c.run, c.replayed).cost_usd_per_epoch);
}

TEST_CASE("evaluate: stages of a pipeline with what their devices did, and the share of the step they wait") {
  Evaluated c;
  CHECK_FALSE(evaluate(c.run, c.replayed).bubble_fraction.has_value());
  c.run.report.stages = {{{0}, {"conv"}}, {{1}, {"flat", "fc"}}};
  const RunResult result = evaluate(c.run, c.replayed);
  CHECK(*result.bubble_fraction == 0.5);  // 0.5 s and 1.5 s of 2 s
  CHECK(result.stages ==
        std::vector<StageResult>{{"a", {"a"}, {"conv"}, 0.5, 400}, {"b", {"b"}, {"flat", "fc"}, 1.5, 700}});
  c.run.report.stages = {{{0, 1}, {"conv", "flat", "fc"}}};  // replicas: the slowest, and the fullest
  CHECK(evaluate(c.run, c.replayed).stages ==
        std::vector<StageResult>{{"a", {"a", "b"}, {"conv", "flat", "fc"}, 1.5, 700}});
}

namespace {

/// What the slower (factor above 1) or faster messages of a device cost it by brute force: a device computes
/// in `pieces` equal pieces; `messages` equal messages queue up, the m-th ready after its share of the
/// pieces; the step ends when all is done.
double queued_step_s(double compute_s, double comm_s, int messages, double factor) {
  double free_s = 0;
  for (int m = 1; m <= messages; ++m)
    free_s = std::max(free_s, compute_s * m / (messages + 1)) + factor * comm_s / messages;
  return std::max(compute_s, free_s);
}

}  // namespace

TEST_CASE(
    "the interval of a step that waits for its messages: draws of a queue of messages beside computing") {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (const double comm_s : {0.3, 0.8, 1.2, 3.0}) {
    CAPTURE(comm_s);
    constexpr int messages = 200;
    Evaluated c;
    c.run.machine.transport = load_transport("nccl-tcp", {});
    c.run.machine.device_types.front().evidence_spread = 1e-9;
    c.run.machine.device_types.front().evidence_rows = 1;
    const double step_s = queued_step_s(1, comm_s, messages, 1);
    c.replayed.step_time_s = step_s;
    for (std::size_t d = 0; d < 2; ++d) {
      EndpointUsage& usage = c.replayed.endpoints.of_class()[d];
      usage.compute_s = 1, usage.end_s = step_s, usage.exposed_comm_s = step_s - 1;
      usage.hidden_comm_s = comm_s - usage.exposed_comm_s;
      usage.comm_slack_s = messages / (messages + 1.0) - usage.hidden_comm_s;
    }
    const RunResult result = evaluate(c.run, c.replayed);
    REQUIRE(result.interval);
    std::vector<double> drawn;
    const double spread = comm_spread(CommKind::tcp);
    for (int i = 0; i < 20'000; ++i)
      drawn.push_back(queued_step_s(1, comm_s, messages, std::exp(spread * normal(random))));
    std::sort(drawn.begin(), drawn.end());
    // Beside them the same where computing, of 1 s, takes longer or shorter, and what several devices add.
    const StepSpreads open = step_spreads(c.run, c.run.plan.images);
    REQUIRE(open.compute > 0);
    const auto with_others = [&](double drawn_s, double quantile) {
      const double computing_s = std::exp(quantile * open.compute);
      return std::hypot(drawn_s - step_s, queued_step_s(computing_s, comm_s, messages, 1) - step_s,
                        step_s * std::expm1(quantile * open.devices));
    };
    const double slow = with_others(drawn[18'000], quantile_80),
                 fast = with_others(drawn[2'000], -quantile_80);
    CHECK(result.interval->step_time_s[1] - step_s == approx(slow).epsilon(0.1));
    CHECK(step_s - result.interval->step_time_s[0] == approx(fast).epsilon(0.1));
  }
}

TEST_CASE("an ideal fabric leaves nothing open, and a network-bound step is as open as its network") {
  Evaluated c;
  CHECK_FALSE(evaluate(c.run, c.replayed).interval);
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().evidence_rows = 3;
  for (std::size_t d = 0; d < 2; ++d) {
    EndpointUsage& usage = c.replayed.endpoints.of_class()[d];
    usage = {};
    usage.compute_s = 1e-3, usage.exposed_comm_s = 1.999, usage.end_s = 2;
  }
  const auto relative_width = [&] {
    const auto [low, high] = evaluate(c.run, c.replayed).interval->step_time_s;
    return std::pair{low / 2, high / 2};
  };
  CHECK(relative_width().second == approx(1).epsilon(1e-3));
  c.run.machine.transport = load_transport("nccl-tcp", {});
  const double z = quantile_80;
  const double slower =
      std::hypot(std::expm1(z * comm_spread(CommKind::tcp)), std::expm1(z * devices_spread()));
  const double faster =
      std::hypot(std::expm1(-z * comm_spread(CommKind::tcp)), std::expm1(-z * devices_spread()));
  CHECK(relative_width().second == approx(1 + slower).epsilon(1e-3));
  CHECK(relative_width().first == approx(1 - faster).epsilon(1e-3));
  c.run.machine.transport = load_transport("nccl-rdma", {});
  CHECK(comm_kind(c.run.machine) == CommKind::rdma);
}

TEST_CASE("the interval of a step holds 80 % of draws of the compute time, what it waits for aside") {
  Evaluated c;
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().evidence_rows = 3;
  for (EndpointUsage& usage : c.replayed.endpoints.of_class()) usage = {};
  for (std::size_t d = 0; d < 2; ++d)
    c.replayed.endpoints.of_class()[d].compute_s = 1.5,
    c.replayed.endpoints.of_class()[d].exposed_comm_s = 0.5, c.replayed.endpoints.of_class()[d].end_s = 2;
  const RunResult result = evaluate(c.run, c.replayed);
  REQUIRE(result.interval);
  CHECK(result.warnings.empty());
  const double spread = std::hypot(0.1, residual_spread(residual_kind({}, 32, Precision::fp32)),
                                   machine_spread(c.run.machine.device_types.front()));
  std::mt19937 random(7);
  std::normal_distribution<double> deviation(0, spread);
  constexpr int draws = 200'000;
  int below = 0, above = 0;
  for (int i = 0; i < draws; ++i) {
    const double step_s = 0.5 + 1.5 * std::exp(deviation(random));
    below += step_s < result.interval->step_time_s[0];
    above += step_s > result.interval->step_time_s[1];
  }
  CHECK(below / static_cast<double>(draws) == approx(0.1).epsilon(0.03));
  CHECK(above / static_cast<double>(draws) == approx(0.1).epsilon(0.03));
  CHECK(result.interval->throughput_images_per_s[0] == approx(64 / result.interval->step_time_s[1]));
  CHECK(result.interval->throughput_images_per_s[1] == approx(64 / result.interval->step_time_s[0]));
}

TEST_CASE("what waits for the computing of others takes longer with it, and what waits for images does not") {
  Evaluated c;
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().evidence_rows = 3;
  for (EndpointUsage& usage : c.replayed.endpoints.of_class()) usage = {};
  for (std::size_t d = 0; d < 2; ++d)
    c.replayed.endpoints.of_class()[d].compute_s = 1.5, c.replayed.endpoints.of_class()[d].end_s = 2;
  const double spread = step_spreads(c.run, c.run.plan.images).compute;
  const auto factor = [&](int end) { return std::exp((end == 0 ? -1 : 1) * quantile_80 * spread); };
  const auto interval = [&] { return evaluate(c.run, c.replayed).interval->step_time_s; };
  for (const int end : {0, 1}) CHECK(interval()[end] == approx(2 * factor(end)));  // bubbles of a pipeline
  // A host that makes its images ready in 1.9 s is waited for where computing is quicker than that.
  c.run.plan.input = InputFeed{{1.9}, 1, {""}};
  CHECK(interval()[0] == approx(1.9));
  CHECK(interval()[1] == approx(2 * factor(1)));
  // One that needs the 2 s is waited for, in the half second in which nothing is computed.
  c.run.plan.input->interval_s = {2};
  c.replayed.input_wait_s = 0.5;
  CHECK(interval()[0] == approx(2));
  CHECK(interval()[1] == approx(std::max(2.0, 1.5 * factor(1))));
  c.run.plan.input->prefetch = 0;  // made ready while nobody computes
  c.run.plan.input->interval_s = {0.5};
  for (const int end : {0, 1}) CHECK(interval()[end] == approx(0.5 + 1.5 * factor(end)));
}

TEST_CASE("a device without published figures is named in a line, an exact one has no interval") {
  Evaluated c;
  CHECK_FALSE(evaluate(c.run, c.replayed).interval);
  c.run.machine.device_types.front().evidence_spread = 0.1;
  c.run.machine.device_types.front().generation = "ada";
  const RunResult result = evaluate(c.run, c.replayed);
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0].find("card") != std::string::npos);
  CHECK(result.warnings[0].find("ada") != std::string::npos);
}

TEST_CASE("a CPU under a framework without figures has a wide interval, and the run says so") {
  Evaluated c;
  DeviceType& type = c.run.machine.device_types.front();
  type.kind = cpu_kind();
  type.evidence_spread = 0.1;
  type.evidence_rows = 12;
  const auto spread_of = [&](double one_thread) {
    Software software;
    software.costs.one_thread = one_thread;
    c.run.cost = CostModel(software);
    return step_spreads(c.run, 64).compute;
  };
  const double of_steps =
      std::hypot(residual_spread(residual_kind({}, 32, Precision::fp32)), machine_spread(type));
  CHECK(spread_of(2) == approx(std::hypot(0.1, of_steps)));
  CHECK(evaluate(c.run, c.replayed).warnings.empty());
  CHECK(spread_of(0) == approx(std::hypot(0.1, 0.4, of_steps)));
  const RunResult result = evaluate(c.run, c.replayed);
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0].find("no published figure of a CPU under pytorch") == 0);
}

TEST_CASE(
    "half precision without tensor cores, of which no figure was fitted, has a wide interval, and the run "
    "says so") {
  Evaluated c;
  DeviceType& type = c.run.machine.device_types.front();
  type.evidence_spread = 0.1;
  type.evidence_rows = 12;
  const auto compute_spread_in = [&](Precision precision) {
    TrainingGraph graph = *c.run.graph;
    graph.options.precision = precision;
    c.run.graph = std::make_shared<const TrainingGraph>(graph);
    return step_spreads(c.run, 64).compute;
  };
  const auto of_steps = [&](Precision precision) {
    return std::hypot(residual_spread(residual_kind({}, 32, precision)), machine_spread(type));
  };
  REQUIRE_FALSE(type.has_tensor_cores());
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    CHECK(compute_spread_in(precision) == approx(std::hypot(0.1, 0.4, of_steps(precision))));
    const RunResult result = evaluate(c.run, c.replayed);
    REQUIRE(result.warnings.size() == 1);
    CHECK(result.warnings[0].find("no published figure in half precision of a GPU without tensor cores") ==
          0);
  }
  CHECK(compute_spread_in(Precision::fp32) == approx(std::hypot(0.1, of_steps(Precision::fp32))));
  CHECK(evaluate(c.run, c.replayed).warnings.empty());
  type.evidence_spread = 0;  // an exact device
  CHECK(compute_spread_in(Precision::fp16) == 0);
}

TEST_CASE("software without figures has a wider interval on a GPU of the catalogue, and the run says so") {
  Evaluated c;
  DeviceType& type = c.run.machine.device_types.front();
  type.evidence_spread = 0.1;
  type.evidence_rows = 12;
  type.issue_factor = 1;
  const auto run_with = [&](Framework framework, ExecutionMode execution) {
    TrainingGraph graph = *c.run.graph;
    graph.options.framework = framework;
    graph.options.execution = execution;
    c.run.graph = std::make_shared<const TrainingGraph>(graph);
    return evaluate(c.run, c.replayed).warnings;
  };
  const double of_steps =
      std::hypot(residual_spread(residual_kind({}, 32, Precision::fp32)), machine_spread(type));
  // A graph has the kernels of eager execution, of which there are figures.
  for (const ExecutionMode execution : {ExecutionMode::eager, ExecutionMode::graph}) {
    CHECK(run_with(Framework::pytorch, execution).empty());
    CHECK(step_spreads(c.run, 64).compute == approx(std::hypot(0.1, of_steps)));
  }
  CHECK(run_with(Framework::tensorflow, ExecutionMode::compiled).empty());
  const std::vector<std::string> warnings = run_with(Framework::pytorch, ExecutionMode::compiled);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("no published figure of pytorch, compiled was fitted") == 0);
  CHECK(step_spreads(c.run, 64).compute ==
        approx(std::hypot(0.1, unknown_spread(Unknown::software), of_steps)));
  type.kind = cpu_kind();  // where frameworks launch no kernels
  c.run.cost = CostModel([] {
    Software software;
    software.costs.one_thread = 2;
    return software;
  }());
  CHECK(run_with(Framework::pytorch, ExecutionMode::compiled).empty());
}
