// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/plan/validate.h"
#include "strategies/pardnn/operation_dag.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Two branches of convolutions that are added up, and a classifier.
const std::string branched_model =
    "{name: branched, input: [3, 32, 32], loss: cross_entropy, layers: ["
    "{name: stem, kind: conv2d, out_channels: 32, kernel: 3, padding: 1},"
    "{name: stem_relu, kind: relu},"
    "{name: a1, kind: conv2d, out_channels: 64, kernel: 3, padding: 1},"
    "{name: a1_norm, kind: batch_norm},"
    "{name: a2, kind: conv2d, out_channels: 64, kernel: 3, padding: 1},"
    "{name: b1, kind: conv2d, out_channels: 64, kernel: 5, padding: 2, inputs: [stem_relu]},"
    "{name: b2, kind: conv2d, out_channels: 64, kernel: 3, padding: 1},"
    "{name: sum, kind: add, inputs: [a2, b2]},"
    "{name: pool, kind: max_pool, kernel: 2, stride: 2},"
    "{name: flat, kind: flatten},"
    "{name: fc, kind: linear, out_features: 10}]}";

lab::Experiment experiment(const std::string& model, int devices, const std::string& keys = "",
                           const std::string& bandwidth = "10GB/s") {
  return lab::Experiment(model, lab::star(devices, bandwidth, "5us"), "{kind: pardnn" + keys + "}", 16);
}

std::map<std::string, int> operations_of(const Plan& plan) {
  std::map<std::string, int> count;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        if (op.work != Work{}) count[op.name] += static_cast<int>(role.members.size());
  return count;
}

}  // namespace

TEST_CASE("pardnn runs every operation of the training graph exactly once, on the whole batch") {
  for (const int devices : {1, 2, 4}) {
    const lab::Experiment run = experiment(branched_model, devices);
    validate(run.plan(), run.machine());
    const std::map<std::string, int> count = operations_of(run.plan());
    CHECK(count.size() == run.graph().operations.size());
    for (const auto& [name, times] : count) CHECK_MESSAGE(times == 1, name);
    CHECK(run.plan().images == 16.0 * devices);
  }
}

TEST_CASE("pardnn on one device is single") {
  for (const std::string& model : {branched_model, lab::custom_model(4, 500'000)}) {
    const ReplayResult ours = experiment(model, 1).run();
    const ReplayResult single =
        lab::Experiment(model, lab::star(1, "10GB/s", "5us"), "{kind: single}", 16).run();
    CHECK(ours.step_time_s == approx(single.step_time_s).epsilon(1e-9));
    CHECK(ours.endpoints[0].peak_memory_bytes == single.endpoints[0].peak_memory_bytes);
    CHECK(ours.comm_bytes == 0);
  }
}

TEST_CASE("pardnn sends what crosses: the volume is the partition's connectivity") {
  for (const int devices : {2, 3, 4}) {
    const lab::Experiment run = experiment(branched_model, devices);
    REQUIRE(run.report().partition);
    CHECK(run.report().partition->connectivity_bytes > 0);
    CHECK(run.run().comm_bytes == approx(run.report().partition->connectivity_bytes).epsilon(1e-9));
    CHECK(run.report().partition->cut_bytes <= run.report().partition->connectivity_bytes);
  }
}

TEST_CASE(
    "pardnn's step is not shorter than the work on all devices, nor, on a fast network, longer than on one") {
  for (const int devices : {2, 4}) {
    const lab::Experiment run = experiment(branched_model, devices, "", "300GB/s");
    double work_s = 0;
    for (const Operation& op : run.graph().operations)
      work_s += run.cost().time_s(op.work, op.phase == Phase::update ? 1 : run.plan().images,
                                  run.machine().device_types[0]);
    const double step_s = run.run().step_time_s;
    CHECK(step_s >= work_s / devices);
    CHECK(step_s < work_s);
  }
}

TEST_CASE("pardnn keeps parameters, gradients and optimizer state once over all devices") {
  const lab::Experiment run = experiment(branched_model, 3);
  std::array<double, memory_class_count> sum{};
  for (const Role& role : run.plan().roles)
    for (std::size_t c = 0; c < memory_class_count; ++c) sum[c] += role.resident_bytes[c];
  CHECK(sum == run.graph().resident_bytes());
}

TEST_CASE("pardnn keeps its peaks within the memory it is given, where that is enough") {
  const lab::Experiment free = experiment(branched_model, 4);
  double fullest = 0, all = 0;
  for (const EndpointUsage usage : free.run().endpoints) {
    fullest = std::max(fullest, usage.peak_memory_bytes);
    all += usage.peak_memory_bytes;
  }
  const double limit = 0.75 * fullest;
  REQUIRE(limit > all / 4);  // there is room in the others
  const lab::Experiment tight = experiment(branched_model, 4, fmt::format(", memory: {}B", limit));
  const ReplayResult result = tight.run();
  for (const EndpointUsage usage : result.endpoints) CHECK(usage.peak_memory_bytes <= limit);
  CHECK(result.step_time_s >= free.run().step_time_s * 0.9);
}

TEST_CASE("the partitioner sees tensors as they are") {
  const lab::Experiment run = experiment(branched_model, 2);
  const StrategyInput input{run.graph(), run.machine(), run.cost(), {16, std::nullopt, {"test", 1, 1}}};
  const OperationDag graph = operation_dag(input, 8, 2);
  const auto bytes = [&](const std::string& name) {
    for (NodeId v = 0; v < graph.dag.size(); ++v)
      if (graph.nodes[v].name == name) return graph.dag.output_bytes(v);
    FAIL(name);
    return 0.0;
  };
  CHECK(bytes("a1.forward") == 8 * 64 * 32 * 32 * 4);
  CHECK(bytes("pool.forward") == 8 * (64 * 16 * 16 * 4 + 64 * 16 * 16 * 8));  // with its int64 indices
  CHECK(bytes("a1.data_gradient") == 8 * 32 * 32 * 32 * 4);                   // of its input
  CHECK(bytes("a1.weight_gradient") == (64 * 32 * 9 + 64) * 4);
  CHECK(bytes("a1.parameters") == (64 * 32 * 9 + 64) * 4);
  CHECK(bytes("a1.update") == 0);
  CHECK(bytes("images") == 8 * 3 * 32 * 32 * 4);
  CHECK(bytes("stem_relu.gradient_sum") == 8 * 32 * 32 * 32 * 4);
  // The first layer reads the images to compute its result and again for its weights' gradient; nobody else does.
  std::vector<std::string> readers;
  for (NodeId v = 0; v < graph.dag.size(); ++v)
    if (graph.nodes[v].name == "images")
      for (const NodeId reader : graph.dag.children(v)) readers.push_back(graph.nodes[reader].name);
  std::sort(readers.begin(), readers.end());
  CHECK(readers == std::vector<std::string>{"stem.forward", "stem.weight_gradient"});
}

TEST_CASE("pardnn's graph has an update after all that reads its parameters, and no bytes between them") {
  const lab::Experiment run = experiment(branched_model, 2);
  const StrategyInput input{run.graph(), run.machine(), run.cost(), {16, std::nullopt, {"test", 1, 1}}};
  const OperationDag graph = operation_dag(input, 8, 2);
  const Dag& dag = graph.dag;
  int updates = 0;
  for (NodeId update = 0; update < dag.size(); ++update) {
    if (!graph.nodes[update].name.ends_with(".update")) continue;
    CAPTURE(graph.nodes[update].name);
    ++updates;
    std::vector<bool> before(dag.size());  // of the update
    before[update] = true;
    for (auto v = dag.order().rbegin(); v != dag.order().rend(); ++v)
      for (const NodeId w : dag.children(*v))
        if (before[w]) before[*v] = true;
    for (const NodeId variable : dag.parents(update)) {
      if (graph.nodes[variable].content != OperationDag::Content::variable) continue;
      for (const NodeId reader : dag.children(variable))
        CHECK_MESSAGE(before[reader], graph.nodes[reader].name);
    }
  }
  CHECK(updates == 7);
  for (NodeId v = 0; v < dag.size(); ++v) {
    if (graph.nodes[v].content != OperationDag::Content::end_of_reading) continue;
    CHECK(dag.output_bytes(v) == 0);
    REQUIRE(dag.parents(v).size() == 1);
    CHECK(dag.unit(dag.parents(v)[0]) == dag.unit(v));
  }
}

TEST_CASE("messages are priced by the ways between the devices") {
  const Machine machine = experiment(branched_model, 3).machine();
  const PartLink link = part_link(machine, 3);
  CHECK(link.latency_us == approx(5));
  CHECK(link.bandwidth_Bpus == approx(10'000));
}

TEST_CASE("pardnn on more parts than devices is an error") {
  CHECK_THROWS_WITH_AS(
      experiment(branched_model, 2, ", parts: 3"),
      "strategy:1:23: strategy.parts: 3 parts need a device each, and the cluster has 2; at most 2 here",
      InputError);
}

TEST_CASE("pardnn: a refinement that a method does not have cannot be left out") {
  CHECK_NOTHROW(experiment(branched_model, 2, ", method: heft").machine());
  CHECK_THROWS_WITH_AS(
      experiment(branched_model, 2, ", method: heft, refine: false").machine(),
      doctest::Contains("strategy.refine: only the methods pardnn and best refine; leave it out with heft"),
      InputError);
}
