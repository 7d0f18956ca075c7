// SPDX-License-Identifier: MIT
#include "sim/plan/images_met.h"

#include <algorithm>
#include <map>

namespace convoy::inline plans {

std::vector<double> images_met(const Plan& plan, std::uint32_t devices) {
  const EndlessRun* endless = plan.endless();  // its programs are of several steps
  const double steps =
      endless && !endless->steps.empty() ? static_cast<double>(endless->steps.size()) : plan.steps;
  std::vector<double> images(devices, 0);
  for (const Role& role : plan.roles) {
    std::map<OpId, double> of_op;  // over micro-batches
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        if (op.operation != PlanOp::of_plan) of_op[op.operation] += op.images;
    double most = 0;
    for (const auto& [operation, count] : of_op) most = std::max(most, count / steps);
    for (const EndpointId member : role.members)
      if (member < devices) images[member] = most;
  }
  return images;
}

}  // namespace convoy::plans
