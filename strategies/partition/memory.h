// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/partition/schedule.h"

namespace convoy::inline partition {

/// A node's output on one part: held while the operations at positions [first, last] of the part's sequence
/// run.
struct HeldOutput {
  NodeId node;
  Part part;
  std::uint32_t first, last;
  double bytes;  ///< > 0
};

/// Memory of a scheduled placement, operation by operation (ParDNN's emulator).
/// A part holds the memory_bytes of its nodes throughout. An output is held where it is made from the start
/// of its operation to the end of its last reader there, and while messages with it are under way; on every
/// other part that reads it, from when the message sets out (the buffer is posted before the operation that
/// then runs or runs next) to the end of its last reader there. A variable's output is, at home, part of its
/// memory_bytes.
struct MemoryUse {
  std::vector<std::vector<NodeId>> sequence;  ///< of each part, in the order of the schedule
  std::vector<std::uint32_t> position;        ///< of each node in its part's sequence
  std::vector<HeldOutput> outputs;
  std::vector<double> resident_bytes;        ///< of each part
  std::vector<double> peak_bytes;            ///< of each part, resident_bytes included
  std::vector<std::uint32_t> peak_position;  ///< the first at which the part's peak is reached
};
MemoryUse emulate_memory(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                         const Schedule& schedule);

}  // namespace convoy::partition
