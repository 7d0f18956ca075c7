// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "models/model.h"
#include "sim/base/yaml_node.h"
#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/liveness.h"
#include "sim/lowering/stages.h"

using namespace convoy;

namespace {

/// Bytes in memory while each operation runs. Everything has gone at the end.
template <class Op, class Bytes>
std::vector<double> bytes_while_running(const std::vector<Op*>& program, Bytes bytes) {
  std::vector<double> held;
  double level = 0;
  for (const Op* op : program) {
    for (const auto& memory : op->allocates) level += bytes(memory);
    held.push_back(level);
    for (const auto& memory : op->frees) level -= bytes(memory);
  }
  CHECK(level == 0);
  return held;
}

TrainingGraph graph_of_network(const std::string& name, Recomputation recompute) {
  TrainingOptions options;
  options.recompute = recompute;
  return build_training_graph(read_model(parse_yaml("{name: " + name + "}", "test.yaml")), options);
}

}  // namespace

TEST_CASE(
    "a tensor is in memory from its first to its last user, whatever the order in which they are told") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t operations = 1 + random() % 20, count = random() % 30;
    std::vector<PlanOp> ops(operations);
    std::vector<LiveTensor<MemoryDelta>> tensors(count);
    std::vector<std::set<std::size_t>> users(count);
    for (std::size_t t = 0; t < count; ++t) {
      tensors[t].memory = {MemoryClass::activations, static_cast<double>(1 + random() % 1000)};
      for (std::size_t uses = random() % 4; uses > 0; --uses) {
        const std::size_t position = random() % operations;
        users[t].insert(position);
        tensors[t].life.use(position);
      }
    }
    const std::vector<PlanOp*> program = in_order<PlanOp>({&ops});
    place_tensors(tensors, program);
    const std::vector<double> held =
        bytes_while_running(program, [](const MemoryDelta& delta) { return delta.bytes; });
    for (std::size_t i = 0; i < operations; ++i) {
      double expected = 0;
      for (std::size_t t = 0; t < count; ++t)
        if (!users[t].empty() && *users[t].begin() <= i && i <= *users[t].rbegin())
          expected += tensors[t].memory.bytes;
      CHECK(held[i] == expected);
    }
  }
}

TEST_CASE("a device that runs all of a training graph holds what the graph says is live") {
  for (const Recomputation recompute : {Recomputation::none, Recomputation::blocks})
    for (const std::string name : {"resnet18", "googlenet", "densenet121"}) {
      CAPTURE(name);
      const TrainingGraph graph = graph_of_network(name, recompute);
      Stage stage = whole_network(graph);
      const std::vector<StageOp*> program = in_order<StageOp>({&stage.forward, &stage.backward});
      const std::vector<double> held =
          bytes_while_running(program, [](const StageMemory& memory) { return memory.bytes_per_image; });
      for (std::size_t i = 0; i < program.size(); ++i) {
        double expected = 0;
        for (const Buffer& buffer : graph.buffers)
          if (buffer.born <= program[i]->op && program[i]->op <= buffer.dies)
            expected += buffer.bytes_per_image;
        CHECK(held[i] == expected);
      }
    }
}

TEST_CASE(
    "a tensor that tasks hold is in memory from the first operation that uses it to the last, over "
    "messages") {
  Role role;
  ComputeTasks tasks(role);
  const auto op = [](const char* name) { return PlanOp{name, {}, 1, {}, {}}; };
  const MemoryDelta message{MemoryClass::workspace, 8}, kernel{MemoryClass::activations, 2};
  tasks.add(op("first"));
  const std::size_t sent = tasks.hold(message), one = tasks.hold(kernel);
  tasks.hold({MemoryClass::weights, 100});  // nobody uses it
  tasks.add_unnamed(op("packed"));
  tasks.use(sent);
  const TaskId packed = tasks.close();
  tasks.add(op("second"));
  tasks.use(one);
  tasks.wait_for(packed);
  tasks.add_unnamed(op("released"));
  tasks.use(sent);
  tasks.add(op("third"));
  tasks.close();
  tasks.place_tensors();
  const std::vector<double> held =
      bytes_while_running(operations_of(role), [](const MemoryDelta& delta) { return delta.bytes; });
  CHECK(held == std::vector<double>{0, 8, 10, 8, 0});
}

TEST_CASE("a buffer lives on a device with those of its users that run there") {
  const Buffer buffer{"", MemoryClass::activations, 1, 0, 2, 9, true, {2, 4, 6, 9}};
  std::vector<std::size_t> positions(10, Lifetime::nowhere);
  CHECK_FALSE(lifetime_of(buffer, positions).is_used());
  positions[4] = 11;
  positions[5] = 20;  // does not use it
  positions[6] = 3;   // in another order than the graph's
  const Lifetime life = lifetime_of(buffer, positions);
  CHECK(life.first == 3);
  CHECK(life.last == 11);
}
