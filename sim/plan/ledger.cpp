// SPDX-License-Identifier: MIT
#include "sim/plan/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "sim/plan/program_key.h"

namespace convoy::inline plans {

double total_bytes(const MemoryLevel& level) { return std::accumulate(level.begin(), level.end(), 0.0); }

namespace {

struct ResidentProgram : ProgramKey {
  MemoryLevel resident_bytes;
  bool operator==(const ResidentProgram&) const = default;
};

MemoryPeak peak_of(const ResidentProgram& of) {
  MemoryLevel level = of.resident_bytes;
  MemoryPeak peak{total_bytes(level), level};
  for (const Task& task : of.program) {
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

/// What a program allocates and does not free, and all that it allocates, by class.
struct Turnover {
  MemoryLevel balance{}, turnover{};
};

Turnover turnover_of(const ProgramKey& of) {
  Turnover all;
  auto& [balance, turnover] = all;
  for (TaskId t = 0; t < of.program.size(); ++t) {
    const double times = of.times(t);
    for (const PlanOp& op : of.program[t].ops) {
      for (const MemoryDelta& delta : op.allocates) {
        balance[static_cast<std::size_t>(delta.memory_class)] += times * delta.bytes;
        turnover[static_cast<std::size_t>(delta.memory_class)] += times * delta.bytes;
      }
      for (const MemoryDelta& delta : op.frees)
        balance[static_cast<std::size_t>(delta.memory_class)] -= times * delta.bytes;
    }
  }
  return all;
}

}  // namespace

MemoryPeak peak_memory(const Role& role) {
  static thread_local ProgramMemo<ResidentProgram, MemoryPeak> memo;
  return memo.of({{role.program}, role.resident_bytes}, &peak_of);
}

void require_balanced_memory(const Role& role) {
  static thread_local ProgramMemo<ProgramKey, Turnover> memo;
  const auto [balance, turnover] = memo.of({role.program, role.repeats}, &turnover_of);
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (std::abs(balance[c]) > 1e-9 * turnover[c])
      throw std::logic_error(
          fmt::format("role '{}' ends the step with {} bytes more of {} than it began with", role.name,
                      balance[c], memory_class_names[c]));
}

}  // namespace convoy::plans
