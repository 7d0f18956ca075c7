// SPDX-License-Identifier: MIT
#include "strategies/worker_program.h"

#include <fmt/format.h>

#include <array>

namespace convoy {
namespace {

/// Buffers of the graph by the operation that allocates and the one that frees them.
struct BufferIndex {
  explicit BufferIndex(const TrainingGraph& graph)
      : born(graph.operations.size()), dies(graph.operations.size()) {
    for (const Buffer& buffer : graph.buffers) {
      born[buffer.born].push_back(&buffer);
      dies[buffer.dies].push_back(&buffer);
    }
  }
  std::vector<std::vector<const Buffer*>> born, dies;
};

std::vector<MemoryDelta> deltas(const std::vector<const Buffer*>& buffers, double images) {
  std::array<double, memory_class_count> bytes{};
  for (const Buffer* buffer : buffers)
    bytes[static_cast<std::size_t>(buffer->memory_class)] +=
        buffer->bytes_per_image * images + static_cast<double>(buffer->bytes_fixed);
  std::vector<MemoryDelta> result;
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (bytes[c] > 0) result.push_back({static_cast<MemoryClass>(c), bytes[c]});
  return result;
}

PlanOp plan_op(const Operation& operation, const BufferIndex& buffers, OpId id, double images,
               std::string name) {
  return {std::move(name), operation.work, images, deltas(buffers.born[id], images),
          deltas(buffers.dies[id], images)};
}

/// See add_forward_backward; images by micro-batch.
ForwardBackward add_micro_batches(Role& role, const TrainingGraph& graph, const std::vector<double>& images,
                                  const std::vector<OpId>& cuts) {
  const BufferIndex buffers(graph);
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
      task.ops.push_back(plan_op(operation, buffers, id, images[micro_batch], operation.name + suffix));
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

TaskId add_update(Role& role, const TrainingGraph& graph, std::vector<TaskId> after) {
  const BufferIndex buffers(graph);
  Task task;
  task.name = "update";
  task.after = std::move(after);
  for (OpId id = 0; id < graph.operations.size(); ++id)
    if (graph.operations[id].phase == Phase::update)
      task.ops.push_back(plan_op(graph.operations[id], buffers, id, 1, graph.operations[id].name));
  role.program.push_back(std::move(task));
  return static_cast<TaskId>(role.program.size() - 1);
}

}  // namespace convoy
