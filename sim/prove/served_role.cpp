// SPDX-License-Identifier: MIT
#include "sim/prove/served_role.h"

#include <fmt/format.h>

namespace convoy::inline prove {
namespace {

using Act = OpMeaning::Act;

class ServedRoleFinder {
 public:
  ServedRoleFinder(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const RoleOrder& order, const Role& role)
      : meaning_(*plan.meaning),
        graph_(graph),
        machine_(machine),
        order_(order),
        role_(role),
        completes_(graph.operations.size(), false) {
    for (const Parameter& parameter : graph.parameters) completes_[parameter.gradient] = true;
  }

  ServedRole find() const {
    ServedRole use;
    use.works = role_.members.front() < machine_.devices.size();
    std::size_t number = 0;
    for (TaskId t = 0; t < role_.program.size(); ++t) {
      const Task& task = role_.program[t];
      if (task.meaning != no_meaning) {
        const OpMeaning& means = meaning_.operations[task.meaning];
        if (means.act == Act::serve) use.serves[means.bucket].push_back(t);
        if (means.act == Act::collect) use.collects[means.bucket].push_back(t);
      }
      for (const PlanOp& op : task.ops) {
        ++number;
        if (op.meaning != no_meaning) add_step(use, t, number, meaning_.operations[op.meaning]);
      }
      if (task.kind == Task::Kind::send) use.sends[task.comm] = t;
      if (task.kind == Task::Kind::receive) use.receives[task.comm] = t;
      if (task.kind == Task::Kind::collective) use.joins[task.comm] = t;
    }
    return use;
  }

  void add_step(ServedRole& use, TaskId t, std::size_t number, const OpMeaning& means) const {
    const ServedStep step{order_.begins[t], number, means.operation, means.images};
    if (means.act == Act::compress) use.compressed[means.bucket].push_back(step);
    if (means.act != Act::compute && means.act != Act::compress)
      throw NotCovered(
          fmt::format("{}: a worker does more with a bucket than compress it", name_of(role_, t, machine_)));
    if (means.act != Act::compute || means.operation == no_meaning) return;
    const Operation& operation = graph_.operations[means.operation];
    if (operation.phase == Phase::update)
      throw Refuted(fmt::format("{}: updates {}, which servers do", name_of(role_, t, machine_),
                                graph_.model.layers[operation.layer].name));
    if (operation.part != OperationPart::layer) return;
    if (completes_[means.operation]) use.gradients[means.operation].push_back(step);
    if (operation.phase == Phase::forward || operation.phase == Phase::data_gradient)
      use.reads[graph_.model.parameter_owner(operation.layer)].push_back(step);
  }

 private:
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const RoleOrder& order_;
  const Role& role_;
  std::vector<bool> completes_;  ///< by operation of the graph: gradients of parameters
};

}  // namespace

ServedRole served_role(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                       const RoleOrder& order, std::uint32_t r) {
  return ServedRoleFinder(plan, graph, machine, order, plan.roles[r]).find();
}

std::optional<TaskId> task_in(const std::map<CommId, TaskId>& tasks, std::optional<CommId> comm) {
  if (!comm) return std::nullopt;
  const auto found = tasks.find(*comm);
  return found == tasks.end() ? std::nullopt : std::optional(found->second);
}
std::optional<TaskId> task_in(const std::map<CommId, TaskId>& tasks, const std::vector<CommId>& comms) {
  for (const CommId comm : comms)
    if (const std::optional<TaskId> task = task_in(tasks, comm)) return task;
  return std::nullopt;
}

}  // namespace convoy::prove
