// SPDX-License-Identifier: MIT
#include "sim/lowering/group_program.h"

#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
GroupProgram::GroupProgram(const Shared& shared, std::uint32_t stage, std::size_t device,
                           std::vector<GroupSync*> replicas, const std::vector<Pass>& passes, Role& role)
    : shared_(shared),
      role_(role),
      starts_(shared.schedule.steps.size()),
      task_of_(shared.schedule.exchanges.size(), 0),
      own_(device_stage(shared.graph, shared.shardings, shared.schedule, shared.stages, stage, device,
                        shared.layouts)),
      program_(shared.graph, own_.stage, std::move(replicas), role, summing, passes, this,
               shared.plan.meaning.get()) {
  for (std::uint32_t e = 0; e < shared.schedule.exchanges.size(); ++e)
    starts_[shared.schedule.exchanges[e].after].push_back(e);
}

void GroupProgram::before(const Pass& pass, std::size_t position, ComputeTasks& tasks) {
  const std::uint32_t step = own_.positions[pass.backward][position].waits;
  if (step == none) return;
  for (const TaskId task : tasks_of(shared_.schedule.steps[step].waits)) tasks.wait_for(task);
}

void GroupProgram::after(const Pass& pass, std::size_t position, ComputeTasks& tasks) {
  const std::uint32_t step = own_.positions[pass.backward][position].starts;
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

void GroupProgram::mean(const Pass& pass, std::size_t position, OpMeaning& meaning) const {
  const DeviceStage::Position& of = own_.positions[pass.backward][position];
  meaning.images = {pass.first_image, shared_.schedule.parts.front().total()};  // of the group
  meaning.layout = of.layout;
  meaning.is_dropped = of.is_dropped;
}

void GroupProgram::mean_update(std::size_t position, OpMeaning& meaning) const {
  meaning.layout = own_.update_layouts[position];
}

TaskId GroupProgram::next_pass(const Pass& pass, const std::vector<TaskId>& after, std::string task) {
  micro_batch_ = pass.micro_batch;
  return program_.next_pass(after, std::move(task));
}

std::vector<TaskId> GroupProgram::tasks_of(const std::vector<std::uint32_t>& exchanges) const {
  std::vector<TaskId> tasks;
  for (const std::uint32_t e : exchanges)
    if (comms()[e] != none) tasks.push_back(task_of_[e]);
  return tasks;
}

}  // namespace convoy::lowering
