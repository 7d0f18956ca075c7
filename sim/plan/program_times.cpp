// SPDX-License-Identifier: MIT
#include "sim/plan/program_times.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace convoy::inline plans {
namespace {

struct Costs {
  DeviceType device;
  CostModel cost;
  bool operator==(const Costs&) const = default;
  std::size_t hash() const { return std::hash<std::string>{}(device.name); }
};

/// Of an operation of the graph, the work and the images for which its time was asked last.
struct LastTime {
  Work work;
  double images = -1, time_s = 0;
};

/// By operation of the graph, for so many of its first ones: programs that differ in their buckets alone have the
/// same operations.
using LastTimes = std::vector<LastTime>;
constexpr std::size_t most_kept = 4096;

std::shared_ptr<LastTimes> last_times(const TimedProgram& timed) {
  constexpr std::size_t most_costs = 16;
  static thread_local Memo<Costs, std::shared_ptr<LastTimes>> memo(most_costs);
  return memo.of({timed.device, timed.cost}, [](const Costs&) { return std::make_shared<LastTimes>(); });
}

std::vector<double> times_of(const TimedProgram& timed) {
  const std::shared_ptr<LastTimes> kept = last_times(timed);
  std::vector<double> times_s;
  for (const Task& task : timed.program)
    for (const PlanOp& op : task.ops) {
      if (op.operation >= most_kept) {  // or is none of the graph's
        times_s.push_back(timed.cost.time_s(op.work, op.images, timed.device));
        continue;
      }
      if (op.operation >= kept->size()) kept->resize(op.operation + 1);
      LastTime& last = (*kept)[op.operation];
      if (last.images != op.images || last.work != op.work)
        last = {op.work, op.images, timed.cost.time_s(op.work, op.images, timed.device)};
      times_s.push_back(last.time_s);
    }
  return times_s;
}

}  // namespace

std::shared_ptr<const std::vector<double>> program_times_s(const TimedProgram& timed) {
  static thread_local ProgramMemo<TimedProgram, std::shared_ptr<const std::vector<double>>> memo;
  TimedProgram once = timed;
  once.repeats.reset();
  return memo.of(std::move(once), [](const TimedProgram& of) {
    return std::make_shared<const std::vector<double>>(times_of(of));
  });
}

}  // namespace convoy::plans
