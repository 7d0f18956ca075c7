// SPDX-License-Identifier: MIT
#include "sim/lowering/plan_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace convoy::inline lowering {
Work share_of_update(const Work& whole, double share) {
  Work work = whole;
  for (double* cost : {&work.flops_per_image, &work.flops_fixed, &work.bytes_per_image, &work.bytes_fixed})
    *cost *= share;
  return work;
}

Work part_of(const Work& whole, double input_bytes, double of_outputs, double of_inputs) {
  if (of_outputs == 1 && of_inputs == 1) return whole;
  Work part = whole;
  part.flops_per_image *= of_outputs;
  part.flops_fixed *= of_outputs;
  part.bytes_fixed *= of_outputs;
  part.seconds_per_image *= of_outputs;
  part.aside_bytes_per_image *= of_outputs;
  part.aside_bytes_fixed *= of_outputs;
  part.reordered_bytes *= of_outputs;
  const double of_input = std::min(input_bytes, whole.bytes_per_image);
  part.bytes_per_image =
      of_outputs == 0 ? 0 : of_input * of_inputs + (whole.bytes_per_image - of_input) * of_outputs;
  part.out_channels = std::llround(static_cast<double>(whole.out_channels) * of_outputs);
  return part;
}

bool is_convolution(const Layer& layer) {
  return std::holds_alternative<Conv2d>(layer.kind) || std::holds_alternative<ConvTranspose2d>(layer.kind);
}

PlanOp memory_op(std::string name, std::vector<MemoryDelta> allocates, std::vector<MemoryDelta> frees) {
  return {std::move(name), Work{}, 1, std::move(allocates), std::move(frees)};
}

PlanOp elementwise_op(std::string name, double flops, double bytes) {
  PlanOp op = memory_op(std::move(name), {}, {});
  op.work.kind = KernelKind::elementwise;
  op.work.phase = Phase::data_gradient;
  op.work.flops_fixed = flops;
  op.work.bytes_fixed = bytes;
  return op;
}

TaskId add_message(Role& role, Task::Kind kind, std::string name, CommId comm, std::vector<TaskId> after) {
  Task task;
  task.name = std::move(name);
  task.kind = kind;
  task.stream = Task::no_stream;
  task.after = std::move(after);
  task.comm = comm;
  role.program.push_back(std::move(task));
  return static_cast<TaskId>(role.program.size() - 1);
}

TaskId add_compute(Role& role, std::string name, std::vector<PlanOp> ops, std::vector<TaskId> after) {
  Task task;
  task.name = std::move(name);
  task.ops = std::move(ops);
  task.after = std::move(after);
  role.program.push_back(std::move(task));
  return static_cast<TaskId>(role.program.size() - 1);
}

TaskId add_update(Role& role, const TrainingGraph& graph, std::vector<TaskId> after, double share) {
  std::vector<PlanOp> ops;
  for (OpId id = 0; id < graph.operations.size(); ++id)
    if (const Operation& op = graph.operations[id]; op.phase == Phase::update)
      ops.push_back({op.name, share_of_update(op.work, share), 1, {}, {}, id});
  return add_compute(role, "update", std::move(ops), std::move(after));
}

}  // namespace convoy::lowering
