// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/prove/gradient_prover.h"

namespace convoy::inline prove {
namespace gradients {

RoleUse GradientProver::find_uses(std::uint32_t r) const {
  RoleUse use;
  std::size_t number = 0;
  for (TaskId t = 0; t < plan_.roles[r].program.size(); ++t) {
    const Task& task = plan_.roles[r].program[t];
    for (const PlanOp& op : task.ops) {
      ++number;
      if (op.meaning == no_meaning) continue;
      const OpMeaning& means = meaning_.operations[op.meaning];
      const Event event{t, order(r).begins[t], number, means.operation, means.micro_batch, means.images};
      if (means.forgets != no_meaning) use.buckets[means.forgets].forgets.push_back(event);
      if (means.act == Act::add) continue;  // of parts
      if (means.act != Act::compute)
        use.buckets[means.bucket].acts.at(static_cast<std::size_t>(means.act)).push_back(event);
      else if (means.operation != no_meaning)
        add_event(use, event);
    }
    if (task.kind == Task::Kind::collective) add_collective(use, t, plan_.communications[task.comm]);
    if (task.kind == Task::Kind::receive && request_of(task.comm))
      use.buckets[meaning_.communications[plan_.communications[task.comm].meaning].bucket].averages.push_back(
          t);
  }
  for (const auto& [bucket, of] : use.buckets)
    for (const std::size_t p : meaning_.buckets[bucket].parameters) use.buckets_of[p].insert(bucket);
  return use;
}

void GradientProver::add_event(RoleUse& use, const Event& event) const {
  const Operation& operation = graph_.operations[event.operation];
  if (operation.part != OperationPart::layer || !has_parameters_[operation.layer]) return;
  const std::uint32_t owner = graph_.model.parameter_owner(operation.layer);
  if (operation.phase == Phase::update)
    use.updates[owner].push_back(event);
  else if (completes_[event.operation])
    use.gradients[owner].push_back(event);
  if (operation.phase == Phase::forward || operation.phase == Phase::data_gradient)
    use.reads[owner].push_back(event);
}

void GradientProver::add_collective(RoleUse& use, TaskId t, const Communication& comm) const {
  if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
  const CommMeaning& carries = meaning_.communications[comm.meaning];
  if (carries.kind == Kind::agree) return;
  if (parts_ && (carries.kind == Kind::results || carries.kind == Kind::parts)) return;
  BucketUse& of = use.buckets[carries.bucket];
  switch (carries.kind) {
    case Kind::push:
    case Kind::pull:
    case Kind::collect:
    case Kind::hand_out:
      throw NotCovered(fmt::format("'{}' is a message of servers in a collective", comm.name));
    case Kind::results:
    case Kind::parts:
      throw NotCovered(fmt::format("'{}' carries results of operations in a collective", comm.name));
    case Kind::sum:
    case Kind::gather_gradients:
      of.sums.push_back(t);
      break;
    case Kind::sum_factors:
      of.factor_sums.push_back(t);
      break;
    case Kind::average:
    case Kind::exchange:
      of.averages.push_back(t);
      break;
    case Kind::scatter:
      of.scatters.push_back(t);
      break;
    case Kind::gather_parameters:
      of.gathers.push_back(t);
      break;
    case Kind::agree:  // carries nothing
      break;
  }
}

std::size_t GradientProver::update_of(std::uint32_t r, std::uint32_t layer, const Event& gradient) {
  const std::vector<Event>& updates = uses_[r].updates[layer];
  return static_cast<std::size_t>(
      std::upper_bound(updates.begin(), updates.end(), gradient.number,
                       [](std::size_t number, const Event& update) { return number < update.number; }) -
      updates.begin());
}

std::string GradientProver::count_of(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<CommId> GradientProver::comms_of(std::uint32_t r, const BucketUse& use) const {
  std::vector<CommId> comms;
  for (const auto* tasks : {&use.sums, &use.factor_sums, &use.scatters, &use.gathers, &use.averages})
    for (const TaskId t : *tasks) {
      comms.push_back(plan_.roles[r].program[t].comm);
      if (const std::optional<CommId> request = request_of(comms.back())) comms.push_back(*request);
    }
  return comms;
}

std::optional<CommId> GradientProver::request_of(CommId answer) const {
  if (const Service* service = plan_.service())
    for (const Service::Exchange& exchange : service->exchanges)
      if (exchange.pull == answer) return exchange.push;
  return std::nullopt;
}

const std::vector<Event>& GradientProver::updates_of(std::uint32_t r, std::size_t p) const {
  return uses_[r].updates.at(graph_.parameters[p].layer);
}

std::vector<Event> GradientProver::gradients_of(std::uint32_t r, std::size_t p) const {
  std::vector<Event> events;
  if (const auto of = uses_[r].gradients.find(graph_.parameters[p].layer); of != uses_[r].gradients.end())
    for (const Event& event : of->second)
      if (event.operation == graph_.parameters[p].gradient) events.push_back(event);
  return events;
}

std::string GradientProver::gradient_text(std::size_t p, const Event& event) const {
  return fmt::format("the gradient of {} of micro-batch {}", graph_.parameters[p].name, event.micro_batch);
}

std::string GradientProver::list_text(const BucketMeaning& bucket) const {
  return fmt::format(
      "{}{}", graph_.parameters[bucket.parameters.front()].name,
      bucket.parameters.size() > 1 ? fmt::format(" and {} other tensors", bucket.parameters.size() - 1) : "");
}

const std::vector<Event>& GradientProver::acts(const BucketUse& use, Act act) {
  return use.acts.at(static_cast<std::size_t>(act));
}

}  // namespace gradients

}  // namespace convoy::prove
