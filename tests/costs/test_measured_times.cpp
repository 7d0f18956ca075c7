// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "models/model.h"
#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/costs/cost_model.h"
#include "tests/costs/works.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::works;

namespace {

TrainingGraph small_graph() {
  const char* yaml =
      "{name: small, input: [3, 32, 32], layers: [{name: c, kind: conv2d, out_channels: 16, kernel: 3, "
      "padding: 1}, "
      "{name: r, kind: relu}, {name: v, kind: flatten}, {name: f, kind: linear, out_features: 10}]}";
  return build_training_graph(read_model(parse_yaml(yaml, "small.yaml")), {});
}

}  // namespace

TEST_CASE("a step is the sum of its operations") {
  const TrainingGraph graph = small_graph();
  const CostModel cost(Precision::fp32);
  double sum = 0;
  for (const Operation& operation : graph.operations)
    sum += operation_time_s(operation.work, 16, Precision::fp32, ideal());
  CHECK(sum > 0);
  CHECK(step_time_s(graph, 16, cost, ideal()) == approx(sum).epsilon(1e-14));
}

TEST_CASE("an anchor gives exactly the measured throughput and scales every operation alike") {
  const TrainingGraph graph = small_graph();
  DeviceType other = ideal();
  other.name = "other";
  const CostModel plain(Precision::fp32);
  CostModel cost(Precision::fp32);
  cost.anchor(graph, 64, 51.9, ideal());
  CHECK(step_time_s(graph, 64, cost, ideal()) == approx(64 / 51.9).epsilon(1e-13));
  CHECK(step_time_s(graph, 64, cost, other) == step_time_s(graph, 64, plain, other));
  const double factor = step_time_s(graph, 64, cost, ideal()) / step_time_s(graph, 64, plain, ideal());
  for (const Operation& operation : graph.operations) {
    const double time = operation_time_s(operation.work, 8, Precision::fp32, ideal());
    CHECK(cost.time_s(operation.work, 8, ideal()) == approx(time * factor).epsilon(1e-13));
  }
  cost.anchor(graph, 32, 10, ideal());
  CHECK(step_time_s(graph, 32, cost, ideal()) == approx(3.2).epsilon(1e-13));
}

TEST_CASE("anchoring a graph without work changes nothing") {
  TrainingGraph graph = small_graph();
  CostModel cost(Precision::fp32);
  TrainingGraph empty = graph;
  empty.operations.clear();
  cost.anchor(empty, 32, 10, ideal());
  CHECK(step_time_s(graph, 32, cost, ideal()) == step_time_s(graph, 32, CostModel(Precision::fp32), ideal()));
}

TEST_CASE("measured times of a layer replace the model's at their batch, and scale it at others") {
  const Model model = read_model(parse_yaml(
      "{name: net, input: [3, 16, 16], layers: [{name: a, kind: conv2d, out_channels: 8, kernel: 3}, "
      "{name: b, kind: conv2d, out_channels: 8, kernel: 3}, {name: c, kind: flatten}]}",
      "model"));
  const TrainingGraph graph = build_training_graph(model, {});
  DeviceType device = ideal(), other = ideal();
  device.launch_overhead_s = 1e-5;
  other.name = "other";
  const CostModel plain(Precision::fp32);
  CostModel cost(Precision::fp32);
  cost.measured(graph, 1, 32, 3e-3, 7e-3, device);
  cost.measured(graph, 2, 32, 1e-3, 1e-3, device);  // runs no kernel
  const auto sum = [&](const CostModel& by, const std::string& layer, bool forward, double images,
                       const DeviceType& on) {
    double seconds = 0;
    for (const Operation& op : graph.operations)
      if (op.name.starts_with(layer) && op.phase != Phase::update && (op.phase == Phase::forward) == forward)
        seconds += by.time_s(op.work, images, on);
    return seconds;
  };
  CHECK(sum(cost, "b.", true, 32, device) == approx(3e-3).epsilon(1e-12));
  CHECK(sum(cost, "b.", false, 32, device) == approx(7e-3).epsilon(1e-12));
  // At 64 images as much more as the model says.
  CHECK(
      sum(cost, "b.", true, 64, device) ==
      approx(3e-3 * sum(plain, "b.", true, 64, device) / sum(plain, "b.", true, 32, device)).epsilon(1e-12));
  CHECK(sum(cost, "a.", false, 32, device) == sum(plain, "a.", false, 32, device));
  CHECK(sum(cost, "b.", true, 32, other) == sum(plain, "b.", true, 32, other));
  // The anchor scales what the profile left.
  cost.anchor(graph, 32, 1000, device);
  CHECK(step_time_s(graph, 32, cost, device) == approx(0.032).epsilon(1e-12));
}

TEST_CASE("work with a measured time takes that time for every image, and nothing else") {
  Work work = convolution(1e9, 1e6);
  work.seconds_per_image = 2e-3;
  DeviceType device = ideal();
  device.launch_overhead_s = 1e-5;
  CHECK(operation_time_s(work, 5, Precision::fp32, device) == 5 * 2e-3);
}
