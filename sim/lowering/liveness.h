// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// The first and the last operation of a device's program that use a tensor, by their positions. The tensor
/// is in memory from the beginning of the first operation that writes or reads it to the end of the last.
struct Lifetime {
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::size_t first = nowhere, last = 0;

  /// The operation at `position` writes or reads the tensor.
  void use(std::size_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
  bool is_used() const { return first != nowhere; }
};

/// Bytes of a buffer of the training graph for so many images.
double bytes_of(const Buffer& buffer, double images);

/// The lifetime of a buffer of the training graph on a device that runs some of the graph's operations: from
/// its first to its last user there.
/// @param positions of each operation in the program; Lifetime::nowhere: another device runs it
Lifetime lifetime_of(const Buffer& buffer, const std::vector<std::size_t>& positions);

/// A tensor of a device's program. Memory is MemoryDelta where operations are PlanOp (of so many images), and
/// StageMemory where they are StageOp (of any number).
template <class Memory>
struct LiveTensor {
  Memory memory;
  Lifetime life;
};

/// The liveness pass: allocates each tensor with the first operation that uses it, and frees it with the
/// last. Tensors that no operation uses take no memory. Buffers of one operation keep the order of `tensors`,
/// since the framework's allocator gets a request for each.
/// @param program a device's operations in the order in which it runs them
template <class Op, class Memory>
void place_tensors(const std::vector<LiveTensor<Memory>>& tensors, const std::vector<Op*>& program) {
  for (const LiveTensor<Memory>& tensor : tensors) {
    if (!tensor.life.is_used()) continue;
    program.at(tensor.life.first)->allocates.push_back(tensor.memory);
    program.at(tensor.life.last)->frees.push_back(tensor.memory);
  }
}

/// The operations of several lists that a device runs one after the other.
template <class Op>
std::vector<Op*> in_order(const std::vector<std::vector<Op>*>& lists) {
  std::vector<Op*> program;
  for (std::vector<Op>* list : lists)
    for (Op& op : *list) program.push_back(&op);
  return program;
}

/// The operations that a role's members compute, task by task.
std::vector<PlanOp*> operations_of(Role& role);

}  // namespace convoy::lowering
