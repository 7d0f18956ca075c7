// SPDX-License-Identifier: MIT
#include "sim/lowering/liveness.h"

namespace convoy::inline lowering {

double bytes_of(const Buffer& buffer, double images) {
  return buffer.bytes_per_image * images + static_cast<double>(buffer.bytes_fixed);
}

Lifetime lifetime_of(const Buffer& buffer, const std::vector<std::size_t>& positions) {
  Lifetime life;
  for (const OpId op : buffer.uses)
    if (positions[op] != Lifetime::nowhere) life.use(positions[op]);
  return life;
}

std::vector<PlanOp*> operations_of(Role& role) {
  std::vector<PlanOp*> program;
  for (Task& task : role.program)
    for (PlanOp& op : task.ops) program.push_back(&op);
  return program;
}

}  // namespace convoy::lowering
