// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/prove/happens_before.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// A part of what a device needs, from one of its operations to another one, by their places in its program.
struct NeededBytes {
  std::size_t first, last;
  MemoryClass memory_class;
  double bytes;
};
/// Of allocations no buffer is named; their sums by class are held against what is needed.
/// @throws Refuted unless at least the bytes that are needed are allocated whenever an operation of the role runs,
/// and none after the last one
void check_held(const Role& role, const std::vector<NeededBytes>& needed, const Machine& machine);

/// Gradients of a bucket of which each device keeps a share (ZeRO's stages 2 and 3) are there from the first operation
/// of the role that makes one of them until their sum is: up to the first operation that begins after it.
void add_scattered(const Plan& plan, const Role& role, const RoleOrder& order, const TrainingGraph& graph,
                   std::vector<NeededBytes>& needed);

/// Whenever an operation runs, at least the bytes of all buffers of the training graph are allocated that
/// were made, or received whole, before and that it or a later one uses, and those of whole gradients until their sum
/// has come where each device keeps a share of it; after the last operation, none are.
/// @throws Refuted
void prove_memory(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                  const HappensBefore& order);

}  // namespace convoy::prove
