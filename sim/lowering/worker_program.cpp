// SPDX-License-Identifier: MIT
#include "sim/lowering/worker_program.h"

#include <fmt/format.h>

#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

/// See add_forward_backward; images by micro-batch.
ForwardBackward add_micro_batches(Role& role, const TrainingGraph& graph, const std::vector<double>& images,
                                  const std::vector<OpId>& cuts) {
  const PlanOps plan_op(graph);
  std::vector<char> cut(graph.operations.size(), 0);
  for (const OpId op : cuts) cut[op] = 1;
  std::vector<TaskId> task_of_op(graph.operations.size(), 0);

  Task task;
  const auto close = [&](std::string name) {
    task.name = std::move(name);
    role.program.push_back(std::move(task));
    task = Task{};
  };
  for (std::size_t micro_batch = 0; micro_batch < images.size(); ++micro_batch) {
    const std::string suffix = images.size() > 1 ? fmt::format(" #{}", micro_batch) : "";
    const bool last = micro_batch + 1 == images.size();
    for (OpId id = 0; id < graph.operations.size(); ++id) {
      const Operation& operation = graph.operations[id];
      if (operation.phase == Phase::update) continue;
      task.ops.push_back(plan_op(id, images[micro_batch], operation.name + suffix));
      if (last) task_of_op[id] = static_cast<TaskId>(role.program.size());
      if (last && cut[id]) close("compute up to " + operation.name);
    }
    if (!last) close(fmt::format("micro-batch{}", suffix));
  }
  if (!task.ops.empty() || role.program.empty()) close("compute to the end of backward");
  ForwardBackward result;
  for (const OpId op : cuts) result.task_of.push_back(task_of_op[op]);
  result.last = static_cast<TaskId>(role.program.size() - 1);
  return result;
}

}  // namespace

ForwardBackward add_forward_backward(Role& role, const TrainingGraph& graph, double images,
                                     std::int64_t micro_batches, const std::vector<OpId>& cuts) {
  return add_micro_batches(role, graph, std::vector<double>(static_cast<std::size_t>(micro_batches), images),
                           cuts);
}

ForwardBackward add_forward_backward(Role& role, const TrainingGraph& graph,
                                     const std::vector<std::int64_t>& micro_batches,
                                     const std::vector<OpId>& cuts) {
  return add_micro_batches(role, graph, {micro_batches.begin(), micro_batches.end()}, cuts);
}

TaskId add_update(Role& role, const TrainingGraph& graph, std::vector<TaskId> after, double share) {
  const PlanOps plan_op(graph);
  Task task;
  task.name = "update";
  task.after = std::move(after);
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    if (graph.operations[id].phase != Phase::update) continue;
    task.ops.push_back(plan_op(id, 1, graph.operations[id].name));
    Work& work = task.ops.back().work;
    for (double* cost : {&work.flops_per_image, &work.flops_fixed, &work.bytes_per_image, &work.bytes_fixed})
      *cost *= share;
  }
  role.program.push_back(std::move(task));
  return static_cast<TaskId>(role.program.size() - 1);
}

}  // namespace convoy
