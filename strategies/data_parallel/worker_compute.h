// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/lowering/compute_tasks.h"
#include "sim/plan/plan.h"
#include "strategies/data_parallel/server_plan.h"
#include "strategies/data_parallel/shards.h"

namespace convoy::inline strategies {

/// Hosts with devices.
std::uint32_t node_count(const Machine& machine);

/// The hosts that servers run on, in order. @throws InputError where the servers do not find a node, or all
/// workers are backup workers.
std::vector<EndpointId> server_endpoints(const ServerOptions& options, const Machine& machine);

/// Appends forward and backward of a worker's micro-batches, cut where messages wait for the last one's
/// gradients and, with `pulled` (by message: the task at whose end its parameters are there), where the first
/// one's operations wait for parameters.
/// @param images of each micro-batch, in turn
/// @param prepare what the worker does with a message's gradients before it sends them: appends operations to
/// the task under way; nothing where it does nothing
/// @return by message: the task at whose end its gradients are complete; with overlap false the last one
std::vector<TaskId> add_worker_compute(ComputeTasks& tasks, const TrainingGraph& graph, double images,
                                       std::int64_t micro_batches, const std::vector<PushMessage>& messages,
                                       bool overlap, const std::vector<TaskId>& pulled,
                                       const std::function<void(std::size_t message)>& prepare = {});

}  // namespace convoy::strategies
