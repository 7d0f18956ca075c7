// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/memo.h"
#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/device.h"

namespace convoy::inline plans {

/// The key of what depends on a role's program; keys of what depends on more are derived from it.
struct ProgramKey {
  SharedList<Task> program;
  /// Where it matters how often tasks are done.
  std::optional<RepeatedTasks> repeats{};

  bool operator==(const ProgramKey&) const = default;
  std::size_t hash() const { return program.hash(); }
  double times(TaskId task) const { return repeats ? repeats->times(task) : 1; }
  /// Its operations, which take the memory.
  std::size_t weight() const {
    std::size_t operations = program.size();
    for (const Task& task : program) operations += task.ops.size();
    return operations;
  }
};

/// The key of what depends on the times of a program's operations.
struct TimedProgram : ProgramKey {
  DeviceType device;
  CostModel cost;
  std::uint32_t devices_of_host = 1;  ///< to which the device's host issues

  bool operator==(const TimedProgram&) const = default;
};

/// What a memo of programs keeps: 100 of ResNet-50, and no program that is larger than all of these.
inline constexpr std::size_t most_kept_operations = 1 << 16;
template <class Key, class Value>
struct ProgramMemo : Memo<Key, Value> {
  ProgramMemo() : Memo<Key, Value>(most_kept_operations) {}
};

}  // namespace convoy::plans
