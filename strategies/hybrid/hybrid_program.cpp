// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_program.h"

#include <fmt/format.h>

#include <utility>

#include "sim/lowering/plan_ops.h"
#include "strategies/hybrid/hybrid_work.h"

namespace convoy {
HybridProgram::HybridProgram(const Shared& shared, std::uint32_t stage, std::size_t device,
                             std::vector<GroupSync*> replicas, const std::vector<Pass>& passes, Role& role)
    : shared_(shared),
      role_(role),
      starts_(shared.schedule.steps.size()),
      task_of_(shared.schedule.exchanges.size(), 0),
      stage_(make_stage(stage, device)),
      program_(shared.graph, stage_, std::move(replicas), role, summing, passes, this) {
  for (std::uint32_t e = 0; e < shared.schedule.exchanges.size(); ++e)
    starts_[shared.schedule.exchanges[e].after].push_back(e);
}

Stage HybridProgram::make_stage(std::uint32_t stage, std::size_t device) {
  const HybridSchedule& schedule = shared_.schedule;
  std::vector<LiveTensor<StageMemory>> tensors;
  for (const HybridSchedule::Copy& copy : schedule.copies) {
    const double bytes = schedule.bytes(copy, device);
    if (copy.life.is_used() && bytes > 0 && schedule.steps[copy.life.first / 2].stage == stage)
      tensors.push_back({{copy.memory_class, 0, bytes}, copy.life});
  }
  std::vector<StageOp> program(2 * schedule.steps.size());
  for (std::uint32_t s = 0; s < schedule.steps.size(); ++s) {
    if (schedule.steps[s].stage != stage) continue;
    program[2 * s] = operation(schedule.steps[s], device);
    program[2 * s + 1] = {StageOp::none, "buffers of " + program[2 * s].name, {}, {}, {}, {}};
  }
  place_tensors(tensors, in_order<StageOp>({&program}));
  Stage made;
  for (std::uint32_t s = 0; s < schedule.steps.size(); ++s) {
    const HybridSchedule::Step& step = schedule.steps[s];
    if (step.stage != stage) continue;
    std::vector<StageOp>& ops = step.backward ? made.backward : made.forward;
    std::vector<Position>& positions = positions_[step.backward];
    ops.push_back(std::move(program[2 * s]));
    positions.push_back({s, none});
    if (StageOp& buffers = program[2 * s + 1]; !buffers.allocates.empty()) {
      ops.push_back(std::move(buffers));
      positions.emplace_back();
    }
    positions.back().starts = s;
  }
  for (OpId id = 0; id < shared_.graph.operations.size(); ++id) {
    const Operation& op = shared_.graph.operations[id];
    if (op.phase == Phase::update && shared_.stages[op.layer] == stage)
      made.update.push_back(
          {id, op.name, share_of_update(shared_.graph, shared_.shardings, id, device), {}, {}, {}});
  }
  return made;
}

StageOp HybridProgram::operation(const HybridSchedule::Step& step, std::size_t device) const {
  if (step.op == HybridSchedule::no_op) return {StageOp::none, "received", {}, {}, {}, {}};
  ShareOfWork share = share_of(shared_.graph, shared_.shardings, shared_.schedule, step, device);
  std::string name = shared_.graph.operations[step.op].name;
  if (step.again) name += " again";
  if (step.part > 0) name += fmt::format(" #{}", step.part - 1);
  return {step.op, std::move(name), share.work, {}, {}, share.images};
}

void HybridProgram::before(const Pass& pass, std::size_t position, ComputeTasks& tasks) {
  const std::uint32_t step = positions_[pass.backward][position].waits;
  if (step == none) return;
  for (const TaskId task : tasks_of(shared_.schedule.steps[step].waits)) tasks.wait_for(task);
}

void HybridProgram::after(const Pass& pass, std::size_t position, ComputeTasks& tasks) {
  const std::uint32_t step = positions_[pass.backward][position].starts;
  if (step == none) return;
  for (const std::uint32_t e : starts_[step]) {
    const CommId comm = comms()[e];
    if (comm == none) continue;
    std::vector<TaskId> before{tasks.close()};
    for (const TaskId earlier : tasks_of(shared_.schedule.exchanges[e].after_exchanges))
      before.push_back(earlier);
    task_of_[e] = add_message(role_, Task::Kind::collective, shared_.plan.communications[comm].name, comm,
                              std::move(before));
    role_.program.back().stream = exchanging;
  }
}

TaskId HybridProgram::next_pass(const Pass& pass, const std::vector<TaskId>& after, std::string task) {
  micro_batch_ = pass.micro_batch;
  return program_.next_pass(after, std::move(task));
}

std::vector<TaskId> HybridProgram::tasks_of(const std::vector<std::uint32_t>& exchanges) const {
  std::vector<TaskId> tasks;
  for (const std::uint32_t e : exchanges)
    if (comms()[e] != none) tasks.push_back(task_of_[e]);
  return tasks;
}

}  // namespace convoy
