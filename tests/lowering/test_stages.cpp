// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/yaml_node.h"
#include "sim/lowering/stages.h"

using namespace convoy;

namespace {

TrainingGraph graph_of(const std::string& layers, const std::string& input = "[2, 4, 4]") {
  return build_training_graph(
      read_model(parse_yaml("{name: toy, input: " + input + ", layers: [" + layers + "]}", "test.yaml")), {});
}

std::vector<std::string> names(const std::vector<StageOp>& ops) {
  std::vector<std::string> result;
  for (const StageOp& op : ops) result.push_back(op.name);
  return result;
}

double peak(const std::vector<const std::vector<StageOp>*>& passes) {
  double level = 0, highest = 0;
  for (const std::vector<StageOp>* pass : passes)
    for (const StageOp& op : *pass) {
      for (const StageMemory& memory : op.allocates) level += memory.bytes_per_image;
      highest = std::max(highest, level);
      for (const StageMemory& memory : op.frees) level -= memory.bytes_per_image;
    }
  CHECK(level == 0);
  return highest;
}

double bytes_allocated(const StageOp& op) {
  double bytes = 0;
  for (const StageMemory& memory : op.allocates) bytes += memory.bytes_per_image;
  return bytes;
}

/// conv a - conv b - add of both - conv c: the output of a jumps over b.
const std::string skip =
    "{name: a, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
    "{name: b, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
    "{name: sum, kind: add, inputs: [a, b]}, "
    "{name: c, kind: conv2d, out_channels: 4, kernel: 1, bias: false}";

}  // namespace

TEST_CASE("a view belongs to the layer whose output it looks at, and is nothing to cut before") {
  const TrainingGraph graph = graph_of(
      "{name: conv, kind: conv2d, out_channels: 3, kernel: 1}, {name: flat, kind: flatten}, "
      "{name: fc, kind: linear, out_features: 5}");
  const Units units = find_units(graph);
  CHECK(units.layers == std::vector<std::uint32_t>{0, 2});
  CHECK(units.unit_of == std::vector<std::uint32_t>{0, 0, 1});
  REQUIRE(units.tensors.size() == 1);
  CHECK(units.tensors[0].layer == 1);                       // what fc reads is the view
  CHECK(units.tensors[0].bytes_per_image == 3 * 16 * 4.0);  // [3, 4, 4] floats
  CHECK(units.parameters == std::vector<double>{3 * 2 + 3, 5 * 48 + 5});
}

TEST_CASE("only the slice that a stage reads is sent to it") {
  const TrainingGraph graph = graph_of(
      "{name: a, kind: conv2d, out_channels: 4, kernel: 1}, "
      "{name: left, kind: slice, first: 0, last: 1, inputs: [a]}, {name: b, kind: relu}, "
      "{name: right, kind: slice, first: 1, last: 4, inputs: [a]}, {name: c, kind: relu}");
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 2}, true);
  REQUIRE(stages.edges.size() == 1);
  CHECK(stages.edges[0].forward_bytes == 3 * 16 * 4.0);  // channels 1 to 3
  CHECK(stages.edges[0].backward_bytes == 3 * 16 * 4.0);
  CHECK(stages.stages[0].layers == std::vector<std::string>{"a", "left", "b", "right"});
}

TEST_CASE(
    "a tensor that jumps over a stage goes straight to its reader, once, and its gradient comes back so") {
  const TrainingGraph graph = graph_of(skip);
  const double tensor = 2 * 16 * 4.0;
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 1, 2}, true);
  // a -> b, a -> {sum, c}, b -> {sum, c}
  REQUIRE(stages.edges.size() == 3);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> ends{{0, 1}, {0, 2}, {1, 2}};
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(stages.edges[e].from == ends[e].first);
    CHECK(stages.edges[e].to == ends[e].second);
    CHECK(stages.edges[e].forward_bytes == tensor);
    CHECK(stages.edges[e].backward_bytes == tensor);
  }
  CHECK(names(stages.stages[0].forward) == std::vector<std::string>{"a.forward"});
  CHECK(names(stages.stages[2].forward) == std::vector<std::string>{"sum.forward", "c.forward"});
  CHECK(names(stages.stages[2].backward) == std::vector<std::string>{"c.data_gradient", "c.weight_gradient"});
  // Both parts of a's gradient come from elsewhere, so they are added up where a is.
  CHECK(names(stages.stages[0].backward) == std::vector<std::string>{"a.gradient_sum", "a.weight_gradient"});
}

TEST_CASE("parts of a gradient that are in one stage are added up there, and sent once") {
  const TrainingGraph graph = graph_of(skip);
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 1}, true);
  REQUIRE(stages.edges.size() == 1);
  CHECK(stages.edges[0].backward_bytes == 2 * 16 * 4.0);
  CHECK(names(stages.stages[0].backward) == std::vector<std::string>{"a.weight_gradient"});
  const std::vector<std::string> second = names(stages.stages[1].backward);
  CHECK(std::find(second.begin(), second.end(), "a.gradient_sum") != second.end());
}

TEST_CASE("parts of a gradient that come from several stages are added up before the pass computes") {
  const std::string conv = ", kind: conv2d, out_channels: 2, kernel: 1, bias: false";
  const TrainingGraph graph = graph_of("{name: a" + conv + "}, {name: b" + conv +
                                       "}, {name: c, kind: add, inputs: [a, b]}, {name: d" + conv +
                                       "}, {name: e, kind: add, inputs: [a, d]}, {name: f" + conv + "}");
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 2, 4}, false);
  const std::vector<std::string> first = names(stages.stages[0].backward);
  REQUIRE(first.size() == 5);
  CHECK(first[0].starts_with("a.gradient_sum"));  // of the parts of c and e
  CHECK(first[1] == "b.data_gradient");
  CHECK(std::count_if(first.begin(), first.end(),
                      [](const std::string& name) { return name.starts_with("a.gradient_sum"); }) == 2);
}

TEST_CASE("no gradient is sent to what lies before the first parameters") {
  const TrainingGraph graph = graph_of(
      "{name: pool, kind: max_pool, kernel: 2, stride: 2}, "
      "{name: conv, kind: conv2d, out_channels: 3, kernel: 1, bias: false}");
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 1}, true);
  REQUIRE(stages.edges.size() == 1);
  CHECK(stages.edges[0].forward_bytes == 2 * 4 * 4.0);
  CHECK(stages.edges[0].backward_bytes == 0);
  CHECK(stages.stages[0].backward.empty());
  CHECK(stages.stages[0].full_backward.empty());  // nothing to recompute for
}

TEST_CASE("memory of stages, counted by hand: two 1x1 convolutions of [2, 4, 4]") {
  const TrainingGraph graph = graph_of(
      "{name: a, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
      "{name: b, kind: conv2d, out_channels: 2, kernel: 1, bias: false}");
  const double tensor = 2 * 16 * 4.0;
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 1}, true);
  const Stage &first = stages.stages[0], &second = stages.stages[1];
  // First: image and output in forward, of which the image stays; image and the gradient that came in
  // backward.
  REQUIRE(first.forward[0].allocates.size() == 2);
  REQUIRE(first.forward[0].frees.size() == 1);
  REQUIRE(first.backward[0].allocates.size() == 1);
  CHECK(peak({&first.forward, &first.backward}) == 2 * tensor);
  // Second: what came and its output, of which what came stays; that and its gradient, which is not freed
  // before the pass is over, though the weight gradient does not need it.
  REQUIRE(names(second.backward) == std::vector<std::string>{"b.data_gradient", "b.weight_gradient"});
  CHECK(second.backward[0].frees.empty());
  CHECK(second.backward[1].frees.size() == 2);
  CHECK(peak({&second.forward, &second.backward}) == 2 * tensor);
}

TEST_CASE("a stage of an addition alone holds the gradient that it hands on") {
  const TrainingGraph graph = graph_of(skip);
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 2, 3}, true);
  REQUIRE(stages.stages[1].backward.size() == 1);
  CHECK(stages.stages[1].backward[0].name == "received");
  CHECK(peak({&stages.stages[1].backward}) == 2 * 16 * 4.0);
}

TEST_CASE("recomputation keeps what came from others only, and runs forward again with everything it needs") {
  const TrainingGraph graph = graph_of(
      "{name: a, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
      "{name: s, kind: sigmoid}, {name: b, kind: conv2d, out_channels: 2, kernel: 1, bias: false}, "
      "{name: t, kind: sigmoid}, {name: c, kind: conv2d, out_channels: 2, kernel: 1, bias: false}");
  const double tensor = 2 * 16 * 4.0;
  const Stages stages = cut_into_stages(graph, find_units(graph), {0, 2}, true);
  const Stage& stage = stages.stages[1];  // b, t, c
  const auto level_after = [](const std::vector<StageOp>& ops) {
    double level = 0;
    for (const StageOp& op : ops) {
      for (const StageMemory& memory : op.allocates) level += memory.bytes_per_image;
      for (const StageMemory& memory : op.frees) level -= memory.bytes_per_image;
    }
    return level;
  };
  CHECK(level_after(stage.light_forward) == tensor);  // the input of b
  CHECK(level_after(stage.forward) == 2 * tensor);    // and the sigmoid's result
  CHECK(level_after(stage.full_backward) == -tensor);
  CHECK(level_after(stage.backward) == -2 * tensor);
  CHECK(names(stage.full_backward).front() == "b.forward again");
  CHECK(stage.full_backward.size() == stage.forward.size() + stage.backward.size());
  CHECK(peak({&stage.light_forward, &stage.full_backward}) <= peak({&stage.forward, &stage.backward}));
  // A gradient is there when the backward pass begins, not while forward runs again.
  const Stages three = cut_into_stages(graph, find_units(graph), {0, 2, 4}, true);
  const std::vector<StageOp>& middle = three.stages[1].full_backward;  // b and t again, and back
  REQUIRE(names(middle)[0] == "b.forward again");
  REQUIRE(names(middle)[2] == "t.data_gradient");
  CHECK(bytes_allocated(middle[0]) == tensor);      // its output
  CHECK(bytes_allocated(middle[2]) == 2 * tensor);  // what came, and what it makes of that
}
