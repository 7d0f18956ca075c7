// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// The work of updating a share of an operation's parameters.
Work share_of_update(const Work& whole, double share);

/// Part of a kernel: the share `of_outputs` of a layer's output channels, which reads (forward, weight
/// gradient) or writes a share of (data gradient) `of_inputs` of the layer's input. Parameters go with the
/// outputs. Without outputs there is no kernel: Work that costs nothing.
/// @param input_bytes of the layer's whole input, an image
Work part_of(const Work& whole, double input_bytes, double of_outputs, double of_inputs);

/// Whether it is a convolution, of one kind or the other (transposed).
bool is_convolution(const Layer& layer);

/// An operation without work: no time, only memory.
PlanOp memory_op(std::string name, std::vector<MemoryDelta> allocates, std::vector<MemoryDelta> frees);

/// One kernel that reads and writes so many bytes, element by element, whatever the number of images.
PlanOp elementwise_op(std::string name, double flops, double bytes);

/// Appends a task that sends or receives, on no stream; returns its id.
TaskId add_message(Role& role, Task::Kind kind, std::string name, CommId comm, std::vector<TaskId> after);

/// Appends a compute task; returns its id.
TaskId add_compute(Role& role, std::string name, std::vector<PlanOp> ops, std::vector<TaskId> after);

/// Appends the optimizer's step on all of the graph's parameters as one task that waits for `after`.
/// @param share of every layer's parameters that this member updates
TaskId add_update(Role& role, const TrainingGraph& graph, std::vector<TaskId> after, double share = 1);

}  // namespace convoy::lowering
