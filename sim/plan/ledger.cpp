// SPDX-License-Identifier: MIT
#include "sim/plan/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace convoy::inline plans {

double total_bytes(const MemoryLevel& level) { return std::accumulate(level.begin(), level.end(), 0.0); }

MemoryPeak peak_memory(const Role& role) {
  MemoryLevel level = role.resident_bytes;
  MemoryPeak peak{total_bytes(level), level};
  for (const Task& task : role.program) {
    for (const PlanOp& op : task.ops) {
      for (const MemoryDelta& delta : op.allocates)
        level[static_cast<std::size_t>(delta.memory_class)] += delta.bytes;
      if (const double now = total_bytes(level); now > peak.bytes) peak = {now, level};
      for (const MemoryDelta& delta : op.frees)
        level[static_cast<std::size_t>(delta.memory_class)] -= delta.bytes;
    }
  }
  return peak;
}

void require_balanced_memory(const Role& role) {
  MemoryLevel balance{}, turnover{};
  for (const Task& task : role.program) {
    for (const PlanOp& op : task.ops) {
      for (const MemoryDelta& delta : op.allocates) {
        balance[static_cast<std::size_t>(delta.memory_class)] += delta.bytes;
        turnover[static_cast<std::size_t>(delta.memory_class)] += delta.bytes;
      }
      for (const MemoryDelta& delta : op.frees)
        balance[static_cast<std::size_t>(delta.memory_class)] -= delta.bytes;
    }
  }
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (std::abs(balance[c]) > 1e-9 * turnover[c])
      throw std::logic_error(
          fmt::format("role '{}' ends the step with {} bytes more of {} than it began with", role.name,
                      balance[c], memory_class_names[c]));
}

}  // namespace convoy::plans
