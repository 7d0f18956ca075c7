// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/lowering/pcie_hosts.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr const char* model =
    "{name: toy, input: [64, 32, 32], layers: ["
    "{name: conv1, kind: conv2d, out_channels: 64, kernel: 3, padding: 1}, {name: bn1, kind: batch_norm},"
    "{name: conv2, kind: conv2d, out_channels: 64, kernel: 3, padding: 1}, {name: bn2, kind: batch_norm},"
    "{name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";

TrainingOptions tensorflow() {
  TrainingOptions options;
  options.precision = Precision::fp16;
  options.framework = Framework::tensorflow1;
  options.execution = ExecutionMode::graph;
  options.layout = Layout::nhwc;
  return options;
}

lab::Experiment replicas(int hosts, int devices, const TrainingOptions& options,
                         const std::string& sync = "bucket: 1B") {
  return {model,
          pcie_hosts(hosts, devices, "fp32: 10TFLOPS, fp16: 10TFLOPS"),
          fmt::format("{{kind: data_parallel, sync: all_reduce, transport: nccl, {}}}", sync),
          {16, std::nullopt, {"test", 1, 1}},
          options};
}

std::size_t collectives_before(const std::vector<Task>& program, const Task& task) {
  return static_cast<std::size_t>(std::count_if(task.after.begin(), task.after.end(), [&](TaskId before) {
    return program[before].kind == Task::Kind::collective;
  }));
}

/// What all-reduces wait for the last device, beside what they take to start.
double waiting_s(const lab::Experiment& lab) {
  double sum_s = 0;
  for (const Communication& comm : lab.plan().communications)
    sum_s += comm.overhead_s - lab.machine().collective_overhead_s;
  return sum_s;
}

/// Time of backward before the backward pass of the first normalization, from the training graph.
double until_last_normalization_s(const lab::Experiment& lab) {
  double sum_s = 0;
  for (const Operation& op : lab.graph().operations) {
    if (op.name == "bn1.data_gradient") return sum_s;
    if (op.phase == Phase::data_gradient || op.phase == Phase::weight_gradient)
      sum_s += lab.cost().time_s(op.work, 16, lab.machine().device_types[0]);
  }
  return -1;
}

}  // namespace

TEST_CASE(
    "normalizations that an all-reduce holds up wait for the last of N evenly spread devices: W (N - 1) / "
    "(N + 1) of the time of backward before them, W by release") {
  for (const auto& [framework, width] :
       {std::pair{Framework::tensorflow1, 1.52}, std::pair{Framework::tensorflow, 1.94}})
    for (const int devices : {2, 4, 8}) {
      TrainingOptions options = tensorflow();
      options.framework = framework;
      const lab::Experiment lab = replicas(1, devices, options);
      const double expected_s = width * (devices - 1) / (devices + 1) * until_last_normalization_s(lab);
      CHECK(expected_s > 0);
      CHECK(waiting_s(lab) == approx(expected_s).epsilon(1e-12));
    }
}

TEST_CASE("a normalization that is held up waits for the all-reduces that have begun before it") {
  const lab::Experiment lab = replicas(1, 4, tensorflow());
  const std::vector<Task>& program = lab.plan().roles.at(0).program;
  std::vector<std::size_t> waited_for;
  for (const Task& task : program)
    if (task.name.ends_with(", held")) waited_for.push_back(collectives_before(program, task));
  // Before bn2 weight and bias of fc, before bn1 scale and shift of bn2, weight and bias of conv2.
  CHECK(waited_for == std::vector<std::size_t>{2, 4});
  // The update waits for all of them, bn1's and conv1's included.
  CHECK(collectives_before(program, program.back()) == 10);
}

TEST_CASE("normalizations of a stage's replicas wait as those of replicas of the whole network") {
  const lab::Experiment whole = replicas(1, 4, tensorflow());
  CHECK(waiting_s(whole) > 0);
  for (const char* strategy :
       {"{kind: pipeline, stages: 1, micro_batches: 1, inner: {kind: data_parallel, sync: all_reduce, "
        "bucket: 1B}}",
        "{kind: hybrid, conv: batch, fc: batch, bucket: 1B}"}) {
    CAPTURE(strategy);
    const lab::Experiment staged{model,
                                 pcie_hosts(1, 4, "fp32: 10TFLOPS, fp16: 10TFLOPS"),
                                 strategy,
                                 {16, std::nullopt, {"test", 1, 1}},
                                 tensorflow()};
    CHECK(waiting_s(staged) == approx(waiting_s(whole)).epsilon(1e-12));
    CHECK(staged.run().step_time_s == approx(whole.run().step_time_s).epsilon(1e-9));
  }
}

TEST_CASE("what normalizations wait counts as communication, not as computing") {
  lab::Experiment lab = replicas(1, 4, tensorflow());
  const double wait_s = waiting_s(lab);
  const ReplayResult waiting = lab.run();
  for (Communication& comm : lab.plan().communications) comm.overhead_s = lab.machine().collective_overhead_s;
  const ReplayResult in_step = lab.run();
  CHECK(waiting.step_time_s > in_step.step_time_s);
  CHECK(waiting.endpoints[0].exposed_comm_s > in_step.endpoints[0].exposed_comm_s);
  // A collective takes at most 23 % of what computes beside it: 0.3 of the time in which it waits.
  CHECK(waiting.endpoints[0].compute_s <= in_step.endpoints[0].compute_s + 0.3 * wait_s);
}

TEST_CASE("a normalization waits only where a bucket has been sent since the one before") {
  // One bucket of all gradients is complete with conv1's, after both normalizations.
  CHECK(waiting_s(replicas(1, 4, tensorflow(), "bucket: 100MB")) == 0);
  const double each_s = waiting_s(replicas(1, 4, tensorflow()));
  // fc's gradient alone fills a bucket: what is left is one that waits for nobody before bn1.
  const double first_s = waiting_s(replicas(1, 4, tensorflow(), "bucket: 1MB"));
  CHECK(first_s > 0);
  CHECK(first_s < each_s);
}

TEST_CASE("normalizations wait for nobody without overlap, persistent kernels or one process") {
  CHECK(waiting_s(replicas(1, 4, tensorflow(), "overlap: false")) == 0);
  CHECK(waiting_s(replicas(1, 1, tensorflow())) == 0);
  CHECK(waiting_s(replicas(2, 4, tensorflow())) == 0);
  CHECK(waiting_s(replicas(1, 4, tensorflow(), "bucket: 1B, launches: per_process")) == 0);
  TrainingOptions options = tensorflow();
  options.layout = Layout::nchw;
  CHECK(waiting_s(replicas(1, 4, options)) == 0);
  options = tensorflow();
  options.precision = Precision::fp32;
  CHECK(waiting_s(replicas(1, 4, options)) == 0);
  options = tensorflow();
  options.execution = ExecutionMode::compiled;
  CHECK(waiting_s(replicas(1, 4, options)) == 0);
  options = tensorflow();
  options.framework = Framework::pytorch;
  CHECK(waiting_s(replicas(1, 4, options)) == 0);
}
