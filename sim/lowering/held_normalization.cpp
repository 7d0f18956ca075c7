// SPDX-License-Identifier: MIT
#include "sim/lowering/held_normalization.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/lowering/grouped_launch.h"
#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

/// W over the time of backward between two normalizations, fitted by release to InceptionV3 and ResNet-50 in
/// half precision on 2, 4 and 8 devices of one host (tf_cnn_benchmarks): TensorFlow 2.3 on A100 and 2.2 on
/// RTX 2080 Ti, TensorFlow 1.15 on RTX 2080 Ti.
double spread_of_arrivals(Framework framework) { return framework == Framework::tensorflow1 ? 1.6 : 1.9; }

bool are_held(const GroupSync& group, const TrainingGraph& graph, const Machine& machine) {
  const TrainingOptions& options = graph.options;
  return one_process_overlaps(group, graph, machine) && options.layout == Layout::nhwc &&
         element_bytes(options.precision) == 2;
}

bool is_normalization_backward(const Work& work) {
  return work.kind == KernelKind::normalization && work.phase == Phase::data_gradient;
}

PlanOp wait_op(const PlanOp& before, double wait_s) {
  PlanOp op = memory_op(before.name + " waits for all-reduce", {}, {});
  op.work.kind = KernelKind::normalization;
  op.work.phase = Phase::data_gradient;
  op.work.seconds_per_image = wait_s;
  return op;
}

}  // namespace

void hold_normalizations(Role& role, const GroupSync& group, const TrainingGraph& graph,
                         const Machine& machine, const CostModel& cost, const DeviceType& type) {
  if (!are_held(group, graph, machine)) return;
  const double devices = group.members();
  const double wait = spread_of_arrivals(graph.options.framework) * (devices - 1) / (devices + 1);
  std::vector<char> is_sent(role.program.size(), 0);
  for (const Task& task : role.program)
    if (task.kind == Task::Kind::collective)
      for (const TaskId before : task.after) is_sent[before] = 1;
  double since_s = 0;  // time of backward since the normalization before
  bool sent = false;   // a collective has begun among them
  for (TaskId t = 0; t < role.program.size(); ++t) {
    std::vector<PlanOp> ops;
    for (PlanOp& op : role.program[t].ops) {
      const double time_s = operation_time_s(op.work, op.images, cost.software(), type);
      if (is_normalization_backward(op.work)) {
        if (std::exchange(sent, false)) ops.push_back(wait_op(op, wait * since_s));
        since_s = 0;
      }
      if (op.work.phase != Phase::forward) since_s += time_s;
      ops.push_back(std::move(op));
    }
    role.program[t].ops = std::move(ops);
    sent = sent || is_sent[t];
  }
}

}  // namespace convoy
