// SPDX-License-Identifier: MIT
#include "sim/plan/program_times.h"

namespace convoy::inline plans {
namespace {

std::vector<double> times_of(const TimedProgram& timed) {
  std::vector<double> times_s;
  for (const Task& task : timed.program)
    for (const PlanOp& op : task.ops) times_s.push_back(timed.cost.time_s(op.work, op.images, timed.device));
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
