// SPDX-License-Identifier: MIT
#include "sim/plan/images_met.h"

#include <algorithm>
#include <vector>

#include "sim/plan/program_key.h"

namespace convoy::inline plans {

namespace {

struct ProgramOfSteps : ProgramKey {
  double steps;
  bool operator==(const ProgramOfSteps&) const = default;
};

/// That an operation of the graph works on in a step.
double most_images(const ProgramOfSteps& of) {
  std::vector<double> of_op;  // over micro-batches
  for (TaskId t = 0; t < of.program.size(); ++t)
    for (const PlanOp& op : of.program[t].ops) {
      if (op.operation == PlanOp::of_plan) continue;
      if (op.operation >= of_op.size()) of_op.resize(op.operation + 1, 0);
      of_op[op.operation] += op.images * of.times(t);
    }
  double most = 0;
  for (const double count : of_op) most = std::max(most, count / of.steps);
  return most;
}

}  // namespace

std::vector<double> images_met(const Plan& plan, std::uint32_t devices) {
  const EndlessRun* endless = plan.endless();  // its programs are of several steps
  const double steps =
      endless && !endless->steps.empty() ? static_cast<double>(endless->steps.size()) : plan.steps;
  static thread_local ProgramMemo<ProgramOfSteps, double> memo;
  std::vector<double> images(devices, 0);
  for (const Role& role : plan.roles) {
    const double most = memo.of({{role.program, role.repeats}, steps}, &most_images);
    for (const EndpointId member : role.members)
      if (member < devices) images[member] = most;
  }
  return images;
}

}  // namespace convoy::plans
