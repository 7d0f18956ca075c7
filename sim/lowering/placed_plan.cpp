// SPDX-License-Identifier: MIT
#include "sim/lowering/placed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/micro_batch_order.h"

namespace convoy::inline lowering {
namespace {

class PlacedPlanner {
 public:
  PlacedPlanner(PlacedWork work, const Machine& machine, const CostModel& cost)
      : work_(std::move(work)), machine_(machine), cost_(cost) {}

  Plan build() {
    plan_.images = work_.images * work_.micro_batches;
    if (work_.meaning) begin_meaning();
    for (const PlacedMessage& message : work_.messages) add_communications(message);
    for (PlacedDevice& device : work_.devices) place_tensors(device.tensors, operations(device));
    const std::vector<std::vector<ScheduledStep>> order = orders();
    for (std::size_t d = 0; d < work_.devices.size(); ++d)
      plan_.roles.push_back(role(work_.devices[d], order[d]));
    return std::move(plan_);
  }

 private:
  static std::vector<PlanOp*> operations(PlacedDevice& device) {
    std::vector<PlanOp*> program;
    for (PlacedStep& step : device.steps)
      for (PlanOp& op : step.ops) program.push_back(&op);
    return program;
  }

  // Meaning.

  void begin_meaning() {
    Meaning& meaning = *(plan_.meaning = std::make_shared<Meaning>());
    meaning.layouts = work_.meaning->layouts;
    meaning.has_images = work_.meaning->has_images;
    meaning.lanes.assign(machine_.endpoint_count(), 0);
    for (EndpointId e = 0; e < machine_.endpoint_count(); ++e) meaning.positions.push_back(e);
  }

  /// What an operation means of a micro-batch.
  void mean(PlanOp& op, std::uint32_t micro_batch) const {
    if (op.meaning == no_meaning) return;
    OpMeaning meaning = work_.meaning->operations[op.meaning];
    meaning.micro_batch = micro_batch;
    meaning.images.first += micro_batch * work_.images;
    op.meaning = static_cast<std::uint32_t>(plan_.meaning->operations.size());
    plan_.meaning->operations.push_back(meaning);
  }

  std::uint32_t meaning_of(const PlacedMessage& message, std::uint32_t micro_batch) {
    if (!work_.meaning) return no_meaning;
    CommMeaning meaning = message.meaning;
    meaning.micro_batch = micro_batch;
    meaning.images = {micro_batch * work_.images, work_.images};
    plan_.meaning->communications.push_back(std::move(meaning));
    return static_cast<std::uint32_t>(plan_.meaning->communications.size() - 1);
  }

  // Communications: one a micro-batch, next to each other.

  void add_communications(const PlacedMessage& message) {
    std::vector<EndpointId> group;
    double bytes = 0;
    for (const PlacedMessage::Part& part : message.parts) {
      group.push_back(part.from);
      group.push_back(part.to);
      bytes += part.bytes;
    }
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
    const auto position = [&](EndpointId device) {
      return static_cast<std::uint32_t>(std::lower_bound(group.begin(), group.end(), device) - group.begin());
    };
    Round round;
    for (const PlacedMessage::Part& part : message.parts) {
      round.pairs.emplace_back(position(part.from), position(part.to));
      round.fractions.push_back(part.bytes / bytes);
    }
    const auto [pattern, fresh] =
        patterns_.try_emplace({group, round.pairs, round.fractions}, plan_.patterns.size());
    if (fresh) plan_.patterns.push_back({{std::move(group)}, {std::move(round)}});
    for (std::uint32_t m = 0; m < work_.micro_batches; ++m)
      plan_.communications.push_back({message.name + suffix(m), static_cast<std::uint32_t>(pattern->second),
                                      bytes, Fidelity::automatic, 0, CommPurpose::other,
                                      meaning_of(message, m)});
  }

  CommId comm_of(std::uint32_t message, std::uint32_t micro_batch) const {
    return message * work_.micro_batches + micro_batch;
  }
  std::string suffix(std::uint32_t m) const { return work_.micro_batches > 1 ? fmt::format(" #{}", m) : ""; }

  // Orders.

  std::vector<std::vector<ScheduledStep>> orders() const {
    if (work_.micro_batches > 1) return order_micro_batches(ordered_steps(), work_.micro_batches);
    std::vector<std::vector<ScheduledStep>> order(work_.devices.size());
    for (std::size_t d = 0; d < order.size(); ++d)
      for (std::uint32_t s = 0; s < work_.devices[d].steps.size(); ++s) order[d].push_back({0, s});
    return order;
  }

  std::vector<std::vector<OrderedStep>> ordered_steps() const {
    std::map<EndpointId, std::uint32_t> index_of;                             // of devices
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sender;  // by device, message: step
    for (std::uint32_t d = 0; d < work_.devices.size(); ++d) {
      for (const EndpointId member : work_.devices[d].members) index_of[member] = d;
      for (std::uint32_t s = 0; s < work_.devices[d].steps.size(); ++s)
        for (const std::uint32_t message : work_.devices[d].steps[s].sends) sender[{d, message}] = s;
    }
    std::vector<std::vector<OrderedStep>> result(work_.devices.size());
    for (std::uint32_t d = 0; d < result.size(); ++d) {
      const Device& device = machine_.devices[work_.devices[d].members.front()];
      for (const PlacedStep& step : work_.devices[d].steps) {
        OrderedStep& ordered = result[d].emplace_back(OrderedStep{{}, step.forward, {}});
        for (const PlanOp& op : step.ops)
          ordered.time.then(cost_.queued_time(op.work, op.images, machine_, device));
        for (const std::uint32_t message : step.receives)
          for (const PlacedMessage::Part& part : work_.messages[message].parts)
            if (index_of.at(part.to) == d)
              ordered.waits_for.push_back(
                  {index_of.at(part.from), sender.at({index_of.at(part.from), message}), delay_s(part)});
      }
    }
    return result;
  }

  /// Latency and transfer alone on the way; what else is under way only the replay knows.
  double delay_s(const PlacedMessage::Part& part) const {
    Route route;
    machine_.router->route(part.from, part.to, route);
    double delay_s = route.latency_s;
    if (!route.links.empty()) {
      double bandwidth_Bps = machine_.links[route.links.front()].bandwidth_Bps;
      for (const LinkId link : route.links)
        bandwidth_Bps = std::min(bandwidth_Bps, machine_.links[link].bandwidth_Bps);
      delay_s += part.bytes / bandwidth_Bps;
    }
    return delay_s;
  }

  // Programs.

  Role role(const PlacedDevice& device, const std::vector<ScheduledStep>& order) const {
    const DeviceType& type = machine_.device_types[machine_.devices[device.members.front()].type];
    Role role;
    role.name = device.name;
    role.members = device.members;
    role.streams = {"compute"};
    role.resident_bytes = device.states;
    role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] += type.reserved_bytes;
    ComputeTasks tasks(role);
    std::vector<TaskId> sent;
    for (const ScheduledStep& scheduled : order)
      add_step(tasks, device.steps[scheduled.step], scheduled.micro_batch, sent);
    if (!order.empty()) tasks.close();
    for (PlanOp op : device.update) {
      mean(op, 0);
      tasks.add(std::move(op));
    }
    if (!device.update.empty()) tasks.close("update");
    return role;
  }

  /// @param sent tasks of messages of which nobody knows yet that they are delivered
  void add_step(ComputeTasks& tasks, const PlacedStep& step, std::uint32_t micro_batch,
                std::vector<TaskId>& sent) const {
    const std::vector<TaskId> before = step.after_sends ? std::exchange(sent, {}) : std::vector<TaskId>{};
    if (step.receives.empty())
      for (const TaskId task : before) tasks.wait_for(task);
    for (const std::uint32_t message : step.receives)
      tasks.receive(plan_, comm_of(message, micro_batch), before);
    for (PlanOp op : step.ops) {
      op.name += suffix(micro_batch);
      mean(op, micro_batch);
      tasks.add(std::move(op));
    }
    if (!step.name.empty()) tasks.close(step.name + suffix(micro_batch));
    for (const std::uint32_t message : step.sends)
      sent.push_back(tasks.send(plan_, comm_of(message, micro_batch)));
  }

  PlacedWork work_;
  const Machine& machine_;
  const CostModel& cost_;
  Plan plan_;
  std::map<std::tuple<std::vector<EndpointId>, std::vector<std::pair<std::uint32_t, std::uint32_t>>,
                      std::vector<double>>,
           std::size_t>
      patterns_;  ///< equal ones once
};

}  // namespace

void PlacedWork::mean(PlanOp& op, OpMeaning of) {
  if (!meaning) return;
  of.images = {0, images};
  op.meaning = static_cast<std::uint32_t>(meaning->operations.size());
  meaning->operations.push_back(of);
}

Plan plan_placed(PlacedWork work, const Machine& machine, const CostModel& cost) {
  return PlacedPlanner(std::move(work), machine, cost).build();
}

}  // namespace convoy::lowering
