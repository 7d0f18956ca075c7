// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_program.h"

#include <fmt/format.h>

#include <utility>

#include "sim/lowering/plan_ops.h"
#include "strategies/hybrid/hybrid_work.h"

namespace convoy {
namespace {

constexpr std::uint32_t none = HybridSchedule::none;

void add(std::vector<MemoryDelta>& deltas, MemoryClass memory_class, double bytes) {
  for (MemoryDelta& delta : deltas)
    if (delta.memory_class == memory_class) {
      delta.bytes += bytes;
      return;
    }
  deltas.push_back({memory_class, bytes});
}

std::vector<MemoryDelta> at(const std::map<std::uint32_t, std::vector<MemoryDelta>>& times,
                            std::uint32_t time) {
  const auto it = times.find(time);
  return it == times.end() ? std::vector<MemoryDelta>{} : it->second;
}

}  // namespace

HybridProgram::HybridProgram(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                             const HybridSchedule& schedule, const HybridMessages& messages, const Plan& plan,
                             bool overlap, const std::vector<std::uint32_t>& stages, std::uint32_t stage,
                             std::size_t device, Role& role)
    : graph_(graph),
      shardings_(shardings),
      schedule_(schedule),
      messages_(messages),
      plan_(plan),
      overlap_(overlap),
      stages_(stages),
      stage_(stage),
      device_(device),
      role_(role),
      tasks_(role),
      starts_(schedule.steps.size()),
      task_of_(schedule.exchanges.size(), 0) {
  for (std::uint32_t s = 0; s < schedule.steps.size(); ++s)
    if (schedule.steps[s].stage == stage) steps_[schedule.steps[s].backward].push_back(s);
  for (std::uint32_t e = 0; e < schedule.exchanges.size(); ++e)
    starts_[schedule.exchanges[e].after].push_back(e);
  for (const HybridSchedule::Copy& copy : schedule.copies) {
    const double bytes = schedule.bytes(copy, device);
    if (copy.first == none || bytes == 0 || schedule.steps[copy.first / 2].stage != stage) continue;
    add(allocates_[copy.first], copy.memory_class, bytes);
    add(frees_[copy.last], copy.memory_class, bytes);
  }
}

TaskId HybridProgram::add_collective(Stream stream, CommId comm, std::vector<TaskId> after) {
  const TaskId task =
      add_message(role_, Task::Kind::collective, plan_.communications[comm].name, comm, std::move(after));
  role_.program.back().stream = stream;
  return task;
}

PlanOp HybridProgram::operation(const HybridSchedule::Step& step, const std::string& suffix) const {
  if (step.op == HybridSchedule::no_op) return memory_op("received" + suffix, {}, {});
  ShareOfWork share = share_of(graph_, shardings_, schedule_, step, device_);
  std::string name = graph_.operations[step.op].name;
  if (step.again) name += " again";
  if (step.part > 0) name += fmt::format(" #{}", step.part - 1);
  return {name + suffix, share.work, share.images, {}, {}};
}

void HybridProgram::add_step(std::uint32_t s, const Pass& pass) {
  const HybridSchedule::Step& step = schedule_.steps[s];
  for (const std::uint32_t e : step.waits)
    if (comms_[e] != none) tasks_.wait_for(task_of_[e]);
  PlanOp op = operation(step, pass.suffix);
  op.allocates = at(allocates_, 2 * s);
  op.frees = at(frees_, 2 * s);
  std::vector<MemoryDelta> buffers = at(allocates_, 2 * s + 1);
  const std::string name = op.name;
  tasks_.add(std::move(op));
  if (!buffers.empty()) tasks_.add_memory(memory_op("buffers of " + name, std::move(buffers), {}));
  for (const std::uint32_t e : starts_[s]) {
    if (comms_[e] == none) continue;
    std::vector<TaskId> before{tasks_.close()};
    for (const TaskId earlier : task_of_exchanges(schedule_.exchanges[e].after_exchanges))
      before.push_back(earlier);
    task_of_[e] = add_collective(exchanging, comms_[e], std::move(before));
  }
  const std::vector<HybridMessages::Sum>& sums = messages_.sums[stage_];
  for (; pass.completes && overlap_ && next_sum_ < sums.size() && sums[next_sum_].ready == s; ++next_sum_)
    if (sums[next_sum_].comms[device_] != none)
      summed_.push_back(add_collective(summing, sums[next_sum_].comms[device_], {tasks_.close()}));
}

TaskId HybridProgram::add_pass(const Pass& pass, const std::vector<TaskId>& after, std::string task) {
  comms_ = messages_.of_exchange[static_cast<std::size_t>(pass.micro_batch)];
  for (const TaskId before : after) tasks_.wait_for(before);
  for (const std::uint32_t s : steps_[pass.backward]) add_step(s, pass);
  if (task.empty() && !pass.completes) return last_;
  return last_ = tasks_.close(std::move(task));
}

std::vector<TaskId> HybridProgram::task_of_exchanges(const std::vector<std::uint32_t>& exchanges) const {
  std::vector<TaskId> tasks;
  for (const std::uint32_t e : exchanges)
    if (comms_[e] != none) tasks.push_back(task_of_[e]);
  return tasks;
}

void HybridProgram::update() {
  std::vector<TaskId> before{last_};
  before.insert(before.end(), summed_.begin(), summed_.end());
  const std::vector<HybridMessages::Sum>& sums = messages_.sums[stage_];
  for (; next_sum_ < sums.size(); ++next_sum_)
    if (sums[next_sum_].comms[device_] != none)
      before.push_back(add_collective(summing, sums[next_sum_].comms[device_], {last_}));
  std::vector<PlanOp> ops;
  for (OpId id = 0; id < graph_.operations.size(); ++id) {
    const Operation& op = graph_.operations[id];
    if (op.phase == Phase::update && stages_[op.layer] == stage_)
      ops.push_back({op.name, share_of_update(graph_, shardings_, id, device_), 1, {}, {}});
  }
  add_compute(role_, "update", std::move(ops), std::move(before));
}

}  // namespace convoy
