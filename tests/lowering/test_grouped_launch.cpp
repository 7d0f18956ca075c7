// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/lowering/pcie_hosts.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr double one_launch_s = 75e-6;
constexpr int gradients = 6;  // layers with parameters, one bucket each

TrainingOptions of_framework(Framework framework, ExecutionMode execution = ExecutionMode::graph) {
  TrainingOptions options;
  options.framework = framework;
  options.execution = execution;
  return options;
}

/// Six layers of 0.3 ms an image on exact devices, whose gradients of 4 kB each take next to nothing.
lab::Experiment launches(int hosts, int devices, std::int64_t batch, const TrainingOptions& options,
                         const std::string& sync = "bucket: 1B") {
  return {lab::custom_model(gradients, 1000),
          pcie_hosts(hosts, devices, "fp32: 10TFLOPS"),
          fmt::format("{{kind: data_parallel, sync: all_reduce, transport: nccl, {}}}", sync),
          {batch, std::nullopt, {"test", 1, 1}},
          options};
}

double step_s(const lab::Experiment& lab) { return lab.run().step_time_s; }

/// What the launches of one process add to a step: TensorFlow 1's against PyTorch's processes, which launch
/// for themselves.
double added_s(int hosts, int devices, std::int64_t batch, const std::string& sync = "bucket: 1B") {
  return step_s(launches(hosts, devices, batch, of_framework(Framework::tensorflow1), sync)) -
         step_s(launches(hosts, devices, batch, of_framework(Framework::pytorch1), sync));
}

lab::Experiment launches_of(int hosts, Framework framework, const std::string& sync) {
  return launches(hosts, 4, 8, of_framework(framework), sync);
}

/// Of two devices whose times are scaled so that one alone does so many images/s at batch 8.
double anchored_step_s(Framework framework, double images_per_s) {
  const lab::Experiment lab = launches(1, 2, 8, of_framework(framework));
  CostModel cost(Precision::fp32);
  cost.anchor(lab.graph(), 8, images_per_s, lab.machine().device_types[0]);
  const BatchSpec batch{8, std::nullopt, {"test", 1, 1}};
  const Plan plan =
      read_strategy(
          parse_yaml("{kind: data_parallel, sync: all_reduce, transport: nccl, bucket: 1B}", "strategy"))
          ->plan({lab.graph(), lab.machine(), cost, batch})
          .plan;
  return replay(plan, lab.machine(), cost, {}).step_time_s;
}

}  // namespace

TEST_CASE(
    "one process: a step grows by one launch a collective, whatever the batch and the number of devices") {
  for (const int devices : {2, 4, 8})
    for (const std::int64_t batch : {8, 64}) {
      CAPTURE(devices);
      CAPTURE(batch);
      CHECK(added_s(1, devices, batch) == approx(gradients * one_launch_s).epsilon(1e-9));
    }
  CHECK(added_s(1, 4, 8, "bucket: 25MiB") == approx(one_launch_s).epsilon(1e-9));
}

TEST_CASE("one process: replicas of a pipeline's stages are launched for as those of the whole network") {
  const auto step = [](Framework framework, const std::string& strategy) {
    const lab::Experiment lab{lab::custom_model(gradients, 1000),
                              pcie_hosts(1, 4, "fp32: 10TFLOPS"),
                              strategy,
                              {8, std::nullopt, {"test", 1, 1}},
                              of_framework(framework)};
    return step_s(lab);
  };
  const auto pipeline = [](int stages) {
    return fmt::format(
        "{{kind: pipeline, stages: {}, micro_batches: 1, inner: {{kind: data_parallel, sync: all_reduce, "
        "bucket: 1B}}}}",
        stages);
  };
  CHECK(step(Framework::tensorflow1, pipeline(1)) ==
        approx(step_s(launches_of(1, Framework::tensorflow1, "bucket: 1B"))).epsilon(1e-9));
  // Two stages of two replicas: the later stage's three launches keep the earlier one waiting.
  CHECK(step(Framework::tensorflow1, pipeline(2)) - step(Framework::pytorch1, pipeline(2)) ==
        approx(gradients * one_launch_s).epsilon(1e-9));
}

TEST_CASE("one process: devices of a hybrid are launched for where they exchange gradients only") {
  const auto step = [](Framework framework, const std::string& layout) {
    return step_s(
        {lab::custom_model(gradients, 1000),
         pcie_hosts(1, 4, "fp32: 10TFLOPS"),
         "{kind: hybrid, transport: nccl, bucket: 1B, groups: [{layers: body1, layout: " + layout + "}]}",
         {8, std::nullopt, {"test", 1, 1}},
         of_framework(framework)});
  };
  CHECK(step(Framework::tensorflow1, "batch") ==
        approx(step_s(launches_of(1, Framework::tensorflow1, "bucket: 1B"))).epsilon(1e-9));
  CHECK(step(Framework::tensorflow1, "filter") == approx(step(Framework::pytorch1, "filter")).epsilon(1e-12));
}

TEST_CASE("one process: who launches can be said, whatever the framework and the number of hosts") {
  const auto step = [](int hosts, Framework framework, const std::string& who) {
    return step_s(launches_of(hosts, framework, "bucket: 1B, launches: " + who));
  };
  for (const int hosts : {1, 2})
    for (const Framework framework : {Framework::pytorch1, Framework::tensorflow}) {
      CAPTURE(hosts);
      CHECK(step(hosts, framework, "together") - step(hosts, framework, "per_process") ==
            approx(gradients * one_launch_s).epsilon(0.02));
    }
}

TEST_CASE("one process: a launch takes as long where times are scaled to a measured step") {
  for (const double images_per_s : {100.0, 10'000.0}) {
    CAPTURE(images_per_s);
    CHECK(anchored_step_s(Framework::tensorflow1, images_per_s) -
              anchored_step_s(Framework::pytorch1, images_per_s) ==
          approx(gradients * one_launch_s).epsilon(1e-9));
  }
}

TEST_CASE(
    "no launches of one process without overlap, compiled, on several hosts, with NCCL 1 or of other "
    "frameworks") {
  CHECK(added_s(1, 4, 8, "overlap: false") == approx(0).epsilon(1e-12));
  CHECK(added_s(2, 4, 8) == approx(0).epsilon(1e-12));
  CHECK(added_s(1, 4, 8, "bucket: 1B, rings: in_order") == approx(0).epsilon(1e-12));
  CHECK(added_s(1, 4, 8, "bucket: 1B, launches: per_process") == approx(0).epsilon(1e-12));
  CHECK(added_s(1, 4, 8, "bucket: 1B, launches: apart") == approx(0).epsilon(1e-12));
  CHECK(added_s(1, 1, 8) == approx(0).epsilon(1e-12));
  const double alone_s = step_s(launches(1, 4, 8, of_framework(Framework::pytorch1)));
  CHECK(step_s(launches(1, 4, 8, of_framework(Framework::tensorflow1, ExecutionMode::compiled))) ==
        approx(alone_s).epsilon(1e-12));
  CHECK(step_s(launches(1, 4, 8, of_framework(Framework::tensorflow))) == approx(alone_s).epsilon(1e-12));
}
