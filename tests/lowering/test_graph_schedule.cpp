// SPDX-License-Identifier: MIT
// Schedules of annotated graphs: drawn networks whose exchanges are known, and laws of the zoo's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/yaml_node.h"
#include "sim/lowering/device_stage.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

using Kind = GraphSchedule::Exchange::Kind;

TrainingGraph graph_of_model(const std::string& model, const TrainingOptions& options = {}) {
  return build_training_graph(read_model(parse_yaml(model, "test.yaml")), options);
}

/// Two 1x1 convolutions of [2, 4, 4] images.
TrainingGraph two_convolutions() {
  return graph_of_model(
      "{name: toy, input: [2, 4, 4], layers: ["
      "{name: a, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
      "{name: b, kind: conv2d, out_channels: 4, kernel: 1, bias: false}]}");
}
constexpr double tensor_bytes = 2 * 16 * 4.0;  ///< of an image between them

const Shards six_images = even_images(6, 2);

LayerSharding by_images() {
  const Sharding images{Sharding::Over::batch, std::make_shared<Shards>(six_images)};
  return {"batch", {{images, images, std::nullopt}}, images, images};
}

/// Every device makes two of the four outputs, for which it needs all inputs.
LayerSharding by_outputs() {
  const Sharding channels{Sharding::Over::channel, std::make_shared<Shards>(even_shards(4, 2))};
  LayerSharding sharding{"filter", {{{}, {Sharding::Over::partial}, std::nullopt}}, channels, channels, false,
                         true};
  return sharding;
}

std::vector<GraphSchedule::Exchange> needed(const GraphSchedule& schedule) {
  std::vector<GraphSchedule::Exchange> result;
  for (const GraphSchedule::Exchange& exchange : schedule.exchanges)
    if (exchange.is_needed()) result.push_back(exchange);
  return result;
}

/// That the network on one device holds each of the graph's buffers from its first user to its last: as many
/// bytes while each operation runs.
void check_buffers(const TrainingGraph& graph) {
  std::vector<double> expected(graph.operations.size(), 0.0), held = expected;
  for (const Buffer& buffer : graph.buffers)
    for (OpId id = buffer.born; id <= buffer.dies; ++id)
      expected[id] += buffer.bytes_per_image + static_cast<double>(buffer.bytes_fixed);
  const Stage stage = whole_network(graph);
  double level = 0;
  for (const std::vector<StageOp>* pass : {&stage.forward, &stage.backward})
    for (const StageOp& op : *pass) {
      for (const StageMemory& memory : op.allocates) level += memory.bytes_per_image + memory.bytes_fixed;
      if (op.op != StageOp::none) held[op.op] = level;
      for (const StageMemory& memory : op.frees) level -= memory.bytes_per_image + memory.bytes_fixed;
    }
  CHECK(std::abs(level) < 1);
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    if (graph.operations[id].phase == Phase::update) continue;
    CAPTURE(graph.operations[id].name);
    CHECK(held[id] == approx(expected[id]).epsilon(1e-12));
  }
}

double flops(const StageOp& op) {
  return op.work.flops_per_image * op.images.value_or(0) + op.work.flops_fixed;
}

}  // namespace

TEST_CASE("reshard: where producer and reader agree nothing is exchanged") {
  const TrainingGraph graph = two_convolutions();
  const std::vector<LayerSharding> images{by_images(), by_images()};
  CHECK(schedule_graph(graph, images, six_images, std::nullopt).exchanges.empty());
  CHECK(schedule_graph(graph, replicated_layers(graph.model), six_images, std::nullopt).exchanges.empty());
}

TEST_CASE(
    "reshard: images that a layer needs whole are gathered, and their gradients' parts scattered back") {
  const TrainingGraph graph = two_convolutions();
  const std::vector<LayerSharding> shardings{by_images(), by_outputs()};
  const GraphSchedule schedule = schedule_graph(graph, shardings, six_images, std::nullopt);
  const std::vector<GraphSchedule::Exchange> exchanges = needed(schedule);
  REQUIRE(exchanges.size() == 2);
  CHECK(exchanges[0].kind == Kind::all_gather);
  CHECK(exchanges[1].kind == Kind::reduce_scatter);
  for (const GraphSchedule::Exchange& exchange : exchanges) {
    CHECK(exchange.bytes == 6 * tensor_bytes);
    CHECK(exchange.layer == 1);  // at whose input it is
  }
  CHECK(graph.operations[schedule.steps[exchanges[0].after].op].name == "a.forward");
  CHECK(graph.operations[schedule.steps[exchanges[1].after].op].name == "b.data_gradient");
}

TEST_CASE("stages: a tensor goes to a later stage as it lies, and its gradient comes back") {
  const TrainingGraph graph = two_convolutions();
  const std::vector<LayerSharding> images{by_images(), by_images()};
  const GraphSchedule schedule = schedule_graph(graph, images, six_images, std::nullopt, {0, 1});
  CHECK(schedule.exchanges.empty());
  REQUIRE(schedule.transfers.size() == 2);
  for (const bool backward : {false, true}) {
    const GraphSchedule::Transfer& transfer = schedule.transfers[backward];
    CHECK(transfer.backward == backward);
    CHECK(transfer.from == (backward ? 1 : 0));
    CHECK(transfer.to == (backward ? 0 : 1));
    CHECK(transfer.bytes_per_image == tensor_bytes);
    CHECK(transfer.sharding.over == Sharding::Over::batch);
  }
}

TEST_CASE("devices: their shares of an operation add up to it, and what they allocate is freed") {
  TrainingGraph graph = two_convolutions();
  for (Operation& op : graph.operations) op.work.seconds_per_image = 1;  // as if measured
  const std::vector<LayerSharding> shardings{by_images(), by_outputs()};
  const GraphSchedule schedule = schedule_graph(graph, shardings, six_images, std::nullopt);
  std::vector<double> computed(graph.operations.size(), 0.0), seconds = computed;
  for (const std::size_t device : {0, 1}) {
    const Stage stage = device_stage(graph, shardings, schedule, {0, 0}, 0, device).stage;
    double level = 0;
    for (const std::vector<StageOp>* pass : {&stage.forward, &stage.backward})
      for (const StageOp& op : *pass) {
        if (op.op != StageOp::none) {
          computed[op.op] += flops(op);
          seconds[op.op] += op.work.seconds_per_image * op.images.value_or(0);
        }
        for (const StageMemory& memory : op.allocates) level += memory.bytes_fixed;
        for (const StageMemory& memory : op.frees) level -= memory.bytes_fixed;
      }
    CHECK(level == 0);
  }
  for (OpId id = 0; id < graph.operations.size(); ++id)
    if (const Operation& op = graph.operations[id]; op.phase != Phase::update) {
      CAPTURE(op.name);
      CHECK(computed[id] == approx(6 * op.work.flops_per_image + op.work.flops_fixed));
      CHECK(seconds[id] == approx(6));
    }
}

TEST_CASE(
    "schedules: one device runs every operation once, in the order of the graph, and holds its buffers") {
  for (const char* model : {"resnet50", "inception_v3", "densenet121", "shufflenet_v2_x1_0", "googlenet"})
    for (const Framework framework : {Framework::pytorch, Framework::mxnet})
      for (const Recomputation recompute :
           {Recomputation::none, Recomputation::blocks, Recomputation::sqrt}) {
        CAPTURE(model);
        TrainingOptions options;
        options.framework = framework;
        options.recompute = recompute;
        const TrainingGraph graph = graph_of_model(model, options);
        const GraphSchedule schedule =
            schedule_graph(graph, replicated_layers(graph.model), any_images(), std::nullopt);
        check_buffers(graph);
        std::vector<OpId> ran, expected;
        for (const GraphSchedule::Step& step : schedule.steps) ran.push_back(step.op);
        for (OpId id = 0; id < graph.operations.size(); ++id)
          if (graph.operations[id].phase != Phase::update) expected.push_back(id);
        CHECK(ran == expected);
      }
}

TEST_CASE("devices: a gradient that is made aside takes a device's share of the parameters") {
  const std::string model =
      "{name: toy, input: [8], layers: [{name: fc, kind: linear, out_features: 4, bias: false}]}";
  TrainingOptions options;
  options.framework = Framework::pytorch1;  // which adds it to the gradients there
  const TrainingGraph graph = graph_of_model(model, options);
  const std::vector<LayerSharding> shardings{by_outputs()};
  const GraphSchedule schedule = schedule_graph(graph, shardings, six_images, std::nullopt);
  const Stage stage = device_stage(graph, shardings, schedule, {0}, 0, 0).stage;
  double bytes = 0;
  for (const StageOp& op : stage.backward)
    for (const StageMemory& memory : op.allocates)
      if (memory.memory_class == MemoryClass::gradients) bytes += memory.bytes_fixed;
  CHECK(bytes == 8 * 4 / 2 * 4.0);  // half of 8 x 4 floats
}

// MXNet's plan of memory is there from the first operation to the last, which is another layer's where the
// first layer has no backward pass.
TEST_CASE(
    "schedules: a buffer that no layer's output is stays until its last user, whatever layer that is of") {
  TrainingOptions options;
  options.framework = Framework::mxnet;
  const TrainingGraph graph = graph_of_model(
      "{name: toy, input: [3, 32, 32], loss: cross_entropy, layers: [{name: bn, kind: batch_norm, affine: "
      "false}, "
      "{name: a, kind: conv2d, out_channels: 16, kernel: 3, padding: 1}, {name: r, kind: relu}, "
      "{name: b, kind: conv2d, out_channels: 8, kernel: 3, stride: 2}, {name: p, kind: adaptive_avg_pool}, "
      "{name: f, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
      options);
  const auto plan = std::find_if(graph.buffers.begin(), graph.buffers.end(),
                                 [](const Buffer& buffer) { return buffer.name == "memory plan"; });
  REQUIRE(plan != graph.buffers.end());
  REQUIRE(plan->bytes_per_image > 0);
  REQUIRE(graph.operations[plan->born].layer != graph.operations[plan->dies].layer);
  check_buffers(graph);
  // In two stages the last user is in the other one, which has no part of the plan.
  for (const Stage& stage : cut_into_stages(graph, find_units(graph), {0, 1}, false).stages) {
    double level = 0;
    for (const std::vector<StageOp>* pass : {&stage.forward, &stage.backward})
      for (const StageOp& op : *pass) {
        for (const StageMemory& memory : op.allocates) level += memory.bytes_per_image + memory.bytes_fixed;
        for (const StageMemory& memory : op.frees) level -= memory.bytes_per_image + memory.bytes_fixed;
        CHECK(level > -1);
      }
    CHECK(std::abs(level) < 1);
  }
}
