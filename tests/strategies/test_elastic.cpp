// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/plan/process_memory.h"
#include "sim/plan/validate.h"
#include "sim/replay/replay.h"
#include "strategies/elastic/elastic.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"
#include "topologies/first_devices.h"

using namespace convoy;

namespace {

std::string elastic(const std::string& schedule, const std::string& more = "") {
  return "{kind: elastic, inner: {kind: data_parallel, sync: all_reduce, algorithm: ring}, schedule: " +
         schedule + more + "}";
}

/// Phases of a strategy on a star of ideal devices with 5 layers of 3 GFLOP an image, 100,000 parameters
/// each.
class Case {
 public:
  explicit Case(int nodes)
      : model_(read_model(parse_yaml(lab::custom_model(5, 100'000), "model"))),
        graph_(build_training_graph(model_, {})),
        cost_(Precision::fp32),
        machine_(build_machine(read_cluster(parse_yaml(lab::star(nodes, "10Gbps", "20us"), "cluster")), 0)) {}

  StrategyInput input(std::int64_t global_batch) const {
    return {graph_, machine_, cost_, {std::nullopt, global_batch, {"experiment.yaml", 3, 20}}};
  }
  std::vector<RunPhase> phases(const std::string& strategy, std::int64_t global_batch) const {
    return read_strategy(parse_yaml(strategy, "strategy.yaml"))->phases(input(global_batch));
  }
  double step_s(const Plan& plan, std::uint32_t devices) const {
    const Machine part = first_devices(machine_, devices);
    validate(plan, part);
    return replay(plan, part, cost_, {}).step_time_s;
  }
  double step_s(const RunPhase& phase) const { return step_s(phase.plan, phase.devices); }
  Plan plan(const std::string& strategy, std::int64_t global_batch) const {
    return read_strategy(parse_yaml(strategy, "strategy.yaml"))->plan(input(global_batch)).plan;
  }

 private:
  Model model_;
  TrainingGraph graph_;
  CostModel cost_;
  Machine machine_;
};

std::string error_of(const std::string& strategy, std::int64_t global_batch = 64) {
  try {
    Case(8).phases(strategy, global_batch);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("elastic: a phase for each entry of the schedule, each with the whole batch") {
  const Case lab(8);
  const auto phases = lab.phases(
      elastic("[{at_step: 0, devices: 4}, {at_step: 20, devices: 8}, {at_step: 60, devices: 3}]"), 64);
  REQUIRE(phases.size() == 3);
  CHECK(phases[1].at_step == 20);
  CHECK(phases[2].devices == 3);
  CHECK(phases[2].report.images_by_device == std::vector<std::int64_t>{22, 21, 21});
  for (const RunPhase& phase : phases) CHECK(phase.plan.images == 64);
  CHECK(phases[0].change.traffic.roles.empty());
  CHECK(phases[1].change.traffic_devices == 8);
  CHECK(phases[2].change.traffic_devices == 8);
}

TEST_CASE("elastic: a phase on all devices with equal shares is the inner strategy itself") {
  const Case lab(8);
  const auto phases = lab.phases(elastic("[{at_step: 0, devices: 8}]"), 64);
  const double alone_s =
      lab.step_s(lab.plan("{kind: data_parallel, sync: all_reduce, algorithm: ring}", 64), 8);
  CHECK(lab.step_s(phases[0]) == approx(alone_s).epsilon(1e-12));
}

TEST_CASE("elastic: the plan is that of the last phase, in which devices wait by chance once") {
  std::string cluster = lab::star(4, "10Gbps", "20us");
  cluster.insert(1, "step_jitter: 0.05, ");
  const auto experiment =
      lab::Experiment::with_global_batch(lab::custom_model(5, 100'000), cluster,
                                         elastic("[{at_step: 0, devices: 4}, {at_step: 9, devices: 2}]"), 64);
  const Plan last = experiment.phases().back().plan;
  REQUIRE(experiment.plan().roles.size() == last.roles.size());
  for (std::size_t r = 0; r < last.roles.size(); ++r) {
    CHECK(last.roles[r].slowdown == approx(1 + 0.05 * 0.5642).epsilon(1e-4));  // E[max] of 2
    CHECK(experiment.plan().roles[r].slowdown == last.roles[r].slowdown);
  }
}

TEST_CASE("elastic: one device is a single device with as many micro-batches") {
  const Case lab(8);
  for (const char* balance : {", balance: uniform", ", balance: coarse"}) {
    const auto phases =
        lab.phases(elastic("[{at_step: 0, devices: 1}]", std::string(", micro_batch: 16") + balance), 64);
    const double single_s = lab.step_s(lab.plan("{kind: single, micro_batches: 4}", 64), 8);
    CHECK(lab.step_s(phases[0]) == approx(single_s).epsilon(1e-12));
  }
}

TEST_CASE("elastic: compute of coarse shares, counted by hand") {
  // 64 images by 24: 24, 24 and 16 on 4 devices; 15 GFLOP an image at 10 TFLOPS: 36 ms for the slowest.
  // Evenly: 16 images, 24 ms. The all-reduce of 2 MB adds at most 6 (20 us + 0.5 MB / 1.25 GB/s) = 2.52 ms.
  const Case lab(4);
  const double coarse_s = lab.step_s(
      lab.phases(elastic("[{at_step: 0, devices: 4}]", ", balance: coarse, micro_batch: 24"), 64)[0]);
  const double uniform_s = lab.step_s(
      lab.phases(elastic("[{at_step: 0, devices: 4}]", ", balance: uniform, micro_batch: 24"), 64)[0]);
  CHECK(coarse_s > 0.036);
  CHECK(coarse_s <= 0.036 + 0.00253);
  CHECK(uniform_s > 0.024);
  CHECK(uniform_s <= 0.024 + 0.00253);
}

TEST_CASE("elastic: even shares are never slower than coarse ones") {
  const Case lab(8);
  for (const std::int64_t batch : {8, 29, 64, 100})
    for (const int devices : {1, 2, 3, 5, 8})
      for (const int micro_batch : {1, 7, 16, 64}) {
        const std::string schedule = fmt::format("[{{at_step: 0, devices: {}}}]", devices);
        const auto step_s = [&](const char* balance) {
          return lab.step_s(lab.phases(
              elastic(schedule, fmt::format(", balance: {}, micro_batch: {}", balance, micro_batch)),
              batch)[0]);
        };
        CAPTURE(batch);
        CAPTURE(devices);
        CAPTURE(micro_batch);
        CHECK(step_s("uniform") <= step_s("coarse") * (1 + 1e-9));
      }
}

TEST_CASE("elastic: shrinking pauses for less than a step") {
  const Case lab(8);
  for (const int to : {1, 3, 7}) {
    const auto phases =
        lab.phases(elastic(fmt::format("[{{at_step: 0, devices: 8}}, {{at_step: 5, devices: {}}}]", to)), 64);
    CHECK(phases[1].change.preparation_s == 0);
    CHECK(phases[1].change.pause_s == 0);
    CHECK(lab.step_s(phases[1].change.traffic, 8) < lab.step_s(phases[0]));
  }
}

TEST_CASE("elastic: the same number of devices again changes nothing") {
  const auto phases = Case(8).phases(elastic("[{at_step: 0, devices: 4}, {at_step: 9, devices: 4}]"), 64);
  CHECK(phases[1].change.pause_s == 0);
  CHECK(phases[1].change.traffic.roles.empty());
}

TEST_CASE("elastic: coarse micro-batches stay what they were for the first devices") {
  const auto phases = Case(8).phases(
      elastic("[{at_step: 0, devices: 4}, {at_step: 9, devices: 8}]", ", balance: coarse"), 64);
  CHECK(phases[0].report.images_by_device == std::vector<std::int64_t>{16, 16, 16, 16});
  CHECK(phases[1].report.images_by_device == std::vector<std::int64_t>{16, 16, 16, 16, 0, 0, 0, 0});
}

TEST_CASE("elastic: errors name the place and what is allowed") {
  CHECK(error_of(elastic("[{at_step: 0, devices: 2}, {at_step: 9, devices: 4}, {at_step: 9, devices: 2}]")) ==
        "strategy.yaml:1:155: strategy.schedule[2].at_step: steps must ascend; 9 does not come after 9");
  CHECK(error_of(elastic("[{at_step: 3, devices: 2}]")) ==
        "strategy.yaml:1:103: strategy.schedule[0].at_step: the first entry must be for step 0, found 3");
  CHECK(error_of(elastic("[]")) ==
        "strategy.yaml:1:92: strategy.schedule: expected a list such as [{at_step: 0, devices: 4}], found an "
        "empty "
        "list");
  CHECK(error_of(elastic("[{at_step: 0, devices: 9}]")) ==
        "strategy.yaml:1:115: strategy.schedule: 9 devices from step 0 on, but the cluster has 8");
  CHECK(error_of(elastic("[{at_step: 0, devices: 8}]"), 5) ==
        "experiment.yaml:3:20: training: a global batch of 5 leaves some of 8 devices without an image; at "
        "least 8 "
        "is needed");
  CHECK(error_of("{kind: elastic, inner: {kind: pipelines}, schedule: [{at_step: 0, devices: 1}]}") ==
        "strategy.yaml:1:31: strategy.inner.kind: unknown value 'pipelines' (did you mean 'pipeline'?); "
        "allowed: "
        "data_parallel, pipeline, hybrid");
  CHECK(
      error_of("{kind: elastic, inner: {kind: data_parallel, sync: all_reduce, micro_batches: 2}, schedule: "
               "[{at_step: 0, devices: 1}]}") ==
      "strategy.yaml:1:79: strategy.inner.micro_batches: elastic shares the batch out itself; see "
      "strategy.balance and strategy.micro_batch");
  CHECK(error_of("{kind: elastic, inner: {kind: data_parallel, sync: all_reduce, sync_every: 2}, schedule: "
                 "[{at_step: 0, devices: 1}]}") ==
        "strategy.yaml:1:76: strategy.inner.sync_every: elastic training is the same on any number of "
        "devices, and local steps are not; leave it out");
}

TEST_CASE("elastic: a batch per device is an error") {
  const Case lab(8);
  StrategyInput input = lab.input(64);
  input.batch.global.reset();
  input.batch.per_device = 8;
  const auto strategy = read_strategy(parse_yaml(elastic("[{at_step: 0, devices: 2}]"), "strategy.yaml"));
  CHECK_THROWS_WITH_AS(
      strategy->plan(input),
      "experiment.yaml:3:20: training: elastic needs global_batch, which stays as it is when "
      "devices come and go; found batch_per_device",
      InputError);
}

TEST_CASE("elastic: phases over another inner strategy are that strategy on their devices") {
  const Case lab(8);
  for (const std::string inner : {"{kind: pipeline, stages: auto, micro_batches: 4, inner: {kind: "
                                  "data_parallel, sync: all_reduce, zero: 1}}",
                                  "{kind: hybrid, groups: [{layers: 'body*', layout: batch}]}"}) {
    CAPTURE(inner);
    const auto phases = lab.phases(
        "{kind: elastic, inner: " + inner +
            ", schedule: [{at_step: 0, devices: 8}, {at_step: 9, devices: 2}, {at_step: 20, devices: 4}]}",
        64);
    REQUIRE(phases.size() == 3);
    for (const RunPhase& phase : phases) {
      const Plan alone = read_strategy(parse_yaml(inner, "strategy.yaml"))
                             ->plan({lab.input(64).graph, first_devices(lab.input(64).machine, phase.devices),
                                     lab.input(64).cost, lab.input(64).batch})
                             .plan;
      CHECK(lab.step_s(phase) == lab.step_s(alone, phase.devices));
      CHECK(phase.plan.images == 64);
    }
  }
}

TEST_CASE("elastic: keys that deal out a batch are for inner data parallelism") {
  CHECK(error_of("{kind: elastic, inner: {kind: pipeline}, balance: coarse, schedule: [{at_step: 0, devices: "
                 "4}]}") ==
        "strategy.yaml:1:51: strategy.balance: goes with inner data_parallel only; leave it out");
  CHECK(error_of("{kind: elastic, inner: {kind: pardnn}, schedule: [{at_step: 0, devices: 4}]}") ==
        "strategy.yaml:1:31: strategy.inner.kind: unknown value 'pardnn'; allowed: data_parallel, pipeline, "
        "hybrid");
}

TEST_CASE("elastic takes the largest micro-batch with which the process fits, and not its tensors alone") {
  for (const std::string device : {"gtx-1080-ti", "v100-sxm2-16gb", "a100-sxm4-40gb"})
    for (const std::string model : {"resnet50", "vgg16", "densenet121"}) {
      CAPTURE(device);
      CAPTURE(model);
      const std::string cluster =
          "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 10Gbps, "
          "latency: 20us}, servers: {box: {devices: [{device: " +
          device + ", count: 1}], interconnect: {kind: none}}}}";
      const auto with = [&](const std::string& more) {
        return lab::Experiment::with_global_batch(model, cluster, elastic("[{at_step: 0, devices: 2}]", more),
                                                  65'536);
      };
      const lab::Experiment lab = with("");
      const auto fit = [](const lab::Experiment& experiment) {
        const std::vector<ProcessMemory> memories =
            process_memories(experiment.plan(), experiment.machine(), experiment.graph().options,
                             [](std::size_t) { return 0; });
        return std::all_of(memories.begin(), memories.end(),
                           [](const ProcessMemory& memory) { return memory.fits(); });
      };
      double images = 0;
      for (const Task& task : lab.plan().roles.front().program)
        for (const PlanOp& op : task.ops) images = std::max(images, op.images);
      CHECK(fit(lab));
      CHECK(!fit(with(fmt::format(", micro_batch: {}", std::ceil(images * 1.03 + 1)))));
    }
}
