// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "models/model.h"
#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/plan/program_times.h"
#include "tests/costs/works.h"

using namespace convoy;

TEST_CASE("program times: equal operations of any layers take what each takes alone, measured or not [law]") {
  // Two equal layers, of which one was measured to take longer.
  const TrainingGraph graph = build_training_graph(
      read_model(parse_yaml(
          "{name: net, input: [8, 16, 16], layers: ["
          "{name: a, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: b, kind: relu}, "
          "{name: c, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: d, kind: relu}]}",
          "model")),
      {});
  const CostModel plain(Precision::fp32);
  CostModel measured(Precision::fp32);
  measured.measured(graph, 2, 32, 3e-3, 7e-3, works::ideal());
  int unequal = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Task task;
    for (int i = 0; i < 60; ++i) {
      const auto number = static_cast<std::uint32_t>(random() % graph.operations.size());
      PlanOp op{"op", graph.operations[number].work, static_cast<double>(1 + random() % 3), {}, {}};
      if (random() % 4 == 0) op.work.bytes_fixed += 1;
      if (random() % 2 == 0) op.operation = number;
      task.ops.push_back(op);
    }
    const TimedProgram program{{SharedList<Task>{task}}, works::ideal(), plain};
    TimedProgram of_measured = program;
    of_measured.cost = measured;
    for (const TimedProgram& timed : {program, of_measured}) {
      const auto times_s = program_times_s(timed);
      REQUIRE(times_s->size() == task.ops.size());
      for (std::size_t i = 0; i < task.ops.size(); ++i) {
        CHECK((*times_s)[i] == timed.cost.time_s(task.ops[i].work, task.ops[i].images, timed.device));
        unequal += (*times_s)[i] != plain.time_s(task.ops[i].work, task.ops[i].images, timed.device) ? 1 : 0;
      }
    }
  }
  CHECK(unequal > 50);
}
