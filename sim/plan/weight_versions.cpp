// SPDX-License-Identifier: MIT
#include "sim/plan/weight_versions.h"

namespace convoy::inline plans {
namespace {

/// Calls `visit(means, operation)` for what a role computes of the graph, in order.
template <class Visit>
void for_each_of_graph(const Plan& plan, const TrainingGraph& graph, const Role& role, Visit visit) {
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) {
      if (op.meaning == no_meaning) continue;
      const OpMeaning& means = plan.meaning->operations[op.meaning];
      if (means.act == OpMeaning::Act::compute && means.operation != no_meaning)
        visit(means, graph.operations[means.operation]);
    }
}

}  // namespace

std::vector<std::map<std::int64_t, std::size_t>> doubled_versions(const Plan& plan,
                                                                  const TrainingGraph& graph) {
  std::vector<bool> completes(graph.operations.size(), false);
  for (const Parameter& parameter : graph.parameters) completes[parameter.gradient] = true;
  std::vector<std::map<std::int64_t, std::size_t>> versions(plan.roles.size());
  bool updates_late = false;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::map<std::uint32_t, std::size_t> updates;  // by layer
    bool has_begun = false;                        // a forward pass since the last gradient
    for_each_of_graph(plan, graph, plan.roles[r], [&](const OpMeaning& means, const Operation& operation) {
      if (operation.phase == Phase::update) {
        updates_late = updates_late || has_begun;
        ++updates[operation.layer];
        return;
      }
      if (operation.phase == Phase::forward) has_begun = true;
      if (!completes[means.operation]) return;
      has_begun = false;
      const std::size_t update = updates[operation.layer];
      versions[r][means.micro_batch] = update > 0 ? update - 1 : 0;
    });
  }
  if (!updates_late) versions.assign(plan.roles.size(), {});
  return versions;
}

}  // namespace convoy::plans
