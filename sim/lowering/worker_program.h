// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"

namespace convoy {

/// The compute of a replica as tasks of a role: operations in order on stream 0, cut into tasks where
/// something else waits for one of them.
struct ForwardBackward {
  std::vector<TaskId> task_of;  ///< for each entry of `cuts`: the task at whose end that operation is done
  TaskId last = 0;              ///< the last task; a role without operations gets one empty task
};

/// Appends forward and backward of `micro_batches` micro-batches of `images` images each, one after the
/// other, with the graph's buffers. Gradients are complete in the last micro-batch.
/// @param cuts operations (ids into graph.operations, no updates) after which a task must end, in the last
/// micro-batch.
ForwardBackward add_forward_backward(Role& role, const TrainingGraph& graph, double images,
                                     std::int64_t micro_batches, const std::vector<OpId>& cuts);

/// The same with the images of each micro-batch. Without any, the role has one empty task.
ForwardBackward add_forward_backward(Role& role, const TrainingGraph& graph,
                                     const std::vector<std::int64_t>& micro_batches,
                                     const std::vector<OpId>& cuts);

/// Appends the optimizer's step as one task that waits for `after`.
/// @param share of every layer's parameters that this member updates (sharded optimizer states)
TaskId add_update(Role& role, const TrainingGraph& graph, std::vector<TaskId> after, double share = 1);

}  // namespace convoy
