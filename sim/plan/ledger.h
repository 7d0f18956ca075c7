// SPDX-License-Identifier: MIT
#pragma once

#include <array>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

using MemoryLevel = std::array<double, memory_class_count>;  ///< bytes by class
double total_bytes(const MemoryLevel& level);

/// The level of a member's memory while it runs its program. Compute tasks are on one stream, in program
/// order, so the order of allocations (though not their times) is the program's own. Periods that a program
/// leaves out allocate and free what the last listed one does, from the same level on.
struct MemoryPeak {
  double bytes = 0;
  MemoryLevel level{};  ///< by class, when the total is at its peak
};
MemoryPeak peak_memory(const Role& role);

/// @throws std::logic_error when a program ends at another level than it began: a leak each step.
void require_balanced_memory(const Role& role);

}  // namespace convoy::plans
