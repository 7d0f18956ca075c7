// SPDX-License-Identifier: MIT
#include "sim/lowering/grouped_launch.h"

#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

/// Of a collective, on each device: least squares over ResNet-50 and InceptionV3 in single precision without
/// XLA on 2, 4 and 8 Quadro RTX 8000 and on 2 RTX 2080 Ti (role fit of
/// results/published/scaling_transports.yaml).
constexpr double launch_s = 75e-6;

/// The cost model scales what it is told to the device's measured step (`anchor`); a launch takes what it
/// takes.
PlanOp launch_op(const std::string& collective, const CostModel& cost, const DeviceType& type) {
  PlanOp op = memory_op(collective + " launched", {}, {});
  op.work.kind = KernelKind::elementwise;
  op.work.phase = Phase::data_gradient;
  op.work.seconds_per_image = launch_s;
  op.work.seconds_per_image *= launch_s / cost.time_s(op.work, op.images, type);
  return op;
}

}  // namespace

bool one_process_overlaps(const GroupSync& group, const TrainingGraph& graph, const Machine& machine) {
  return group.launches() != CollectiveLaunches::per_process &&
         graph.options.execution != ExecutionMode::compiled && machine.transport.channels > 0 &&
         group.how().overlap && !group.buckets().empty();
}

void add_grouped_launches(Role& role, const GroupSync& group, const TrainingGraph& graph,
                          const Machine& machine, const CostModel& cost, const DeviceType& type) {
  const bool nccl_1 = group.how().rings == RingOrder::in_order;
  if (group.launches() != CollectiveLaunches::together || nccl_1 ||
      !one_process_overlaps(group, graph, machine))
    return;
  for (TaskId t = 0; t < role.program.size(); ++t) {
    if (role.program[t].kind != Task::Kind::collective) continue;
    const PlanOp launch = launch_op(role.program[t].name, cost, type);
    for (const TaskId before : role.program[t].after) role.program[before].ops.push_back(launch);
  }
}

}  // namespace convoy::lowering
