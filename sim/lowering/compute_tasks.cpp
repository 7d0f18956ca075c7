// SPDX-License-Identifier: MIT
#include "sim/lowering/compute_tasks.h"

#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {

std::size_t ComputeTasks::add(PlanOp op) {
  last_op_ = op.name;
  return add_unnamed(std::move(op));
}

std::size_t ComputeTasks::add_unnamed(PlanOp op) {
  ops_.push_back(std::move(op));
  return count_++;
}

void ComputeTasks::mean(Meaning& all, OpMeaning meaning) {
  PlanOp& last = ops_.empty() ? role_.program[last_].ops.back() : ops_.back();
  last.meaning = static_cast<std::uint32_t>(all.operations.size());
  all.operations.push_back(meaning);
}

void ComputeTasks::wait_for(TaskId task) {
  if (!ops_.empty()) close();
  after_.push_back(task);
}

TaskId ComputeTasks::close(std::string name) {
  if (any_ && ops_.empty() && after_.empty()) return last_;
  if (name.empty())
    name = !last_op_.empty() ? "compute up to " + last_op_ : ops_.empty() ? "wait" : ops_.back().name;
  any_ = true;
  last_op_.clear();
  last_ = add_compute(role_, std::move(name), std::exchange(ops_, {}), std::exchange(after_, {}));
  closed_.push_back(last_);
  return last_;
}

std::size_t ComputeTasks::hold(MemoryDelta memory) {
  tensors_.push_back({memory, {}});
  return tensors_.size() - 1;
}

void ComputeTasks::place_tensors() {
  std::vector<PlanOp*> program;
  for (const TaskId task : closed_)
    for (PlanOp& op : role_.program[task].ops) program.push_back(&op);
  convoy::place_tensors(std::exchange(tensors_, {}), program);
}

void ComputeTasks::receive(const Plan& plan, CommId comm, std::vector<TaskId> after) {
  if (!ops_.empty()) close();
  wait_for(add_message(role_, Task::Kind::receive, "receive " + plan.communications[comm].name, comm,
                       std::move(after)));
}

TaskId ComputeTasks::send(const Plan& plan, CommId comm) {
  std::vector<TaskId> computed;
  if (any_ || !ops_.empty() || !after_.empty()) computed.push_back(close());
  return add_message(role_, Task::Kind::send, "send " + plan.communications[comm].name, comm,
                     std::move(computed));
}

}  // namespace convoy::lowering
