// SPDX-License-Identifier: MIT
#include "sim/lowering/placed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "sim/lowering/device_roles.h"
#include "sim/lowering/micro_batch_order.h"
#include "sim/lowering/replica_program.h"

namespace convoy::inline lowering {
namespace {

StageOp stage_op(const PlanOp& op) {
  const auto fixed = [](const std::vector<MemoryDelta>& deltas) {
    std::vector<StageMemory> memory;
    for (const MemoryDelta& delta : deltas) memory.push_back({delta.memory_class, 0, delta.bytes});
    return memory;
  };
  return {op.operation == PlanOp::of_plan ? StageOp::none : op.operation,
          op.name,
          op.work,
          fixed(op.allocates),
          fixed(op.frees),
          op.images};
}

/// What a device does with a micro-batch, as one pass that goes forward and backward.
struct PlacedPass {
  Stage stage;
  std::vector<std::size_t> first;  ///< by step: position of its first operation; then that behind the last

  explicit PlacedPass(const PlacedDevice& device) {
    for (const PlacedStep& step : device.steps) {
      first.push_back(stage.backward.size());
      for (const PlanOp& op : step.ops) stage.backward.push_back(stage_op(op));
      if (!step.takes_in) continue;
      StageOp& taking = stage.backward[first.back() + step.takes_in->op];
      taking.op = step.takes_in->gradient;
      taking.again = true;  // the operation itself runs elsewhere
    }
    first.push_back(stage.backward.size());
    for (const PlanOp& op : device.update) stage.update.push_back(stage_op(op));
  }
};

class PlacedPlanner {
 public:
  PlacedPlanner(PlacedWork work, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                const GradientSync& sync)
      : work_(std::move(work)), graph_(graph), machine_(machine), cost_(cost), sync_(sync) {}

  Plan build() {
    plan_.images = work_.images * work_.micro_batches * work_.replicas;
    if (work_.meaning) begin_meaning();
    for (const PlacedMessage& message : work_.messages) add_communications(message);
    for (PlacedDevice& device : work_.devices) place_tensors(device.tensors, operations(device));
    const std::vector<std::vector<ScheduledStep>> order = orders();
    for (std::size_t d = 0; d < work_.devices.size(); ++d) add_roles(work_.devices[d], order[d]);
    return std::move(plan_);
  }

 private:
  /// That of replica r which stands for a device of the first.
  EndpointId endpoint(std::uint32_t r, EndpointId device) const {
    return r * work_.devices_a_replica + device;
  }

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
    meaning.image_views = work_.meaning->image_views;
    meaning.lanes.assign(machine_.endpoint_count(), 0);
    meaning.positions.assign(machine_.endpoint_count(), 0);
    for (std::uint32_t r = 0; r < work_.replicas; ++r)
      for (EndpointId device = 0; device < work_.devices_a_replica; ++device) {
        meaning.lanes[endpoint(r, device)] = r;
        meaning.positions[endpoint(r, device)] = device;
        meaning.has_images.push_back(work_.meaning->has_images[device]);
      }
  }

  /// Of the first replica; those of the others come next (ImageRange).
  ImageRange images_of(std::int64_t micro_batch) const {
    return {static_cast<double>(micro_batch) * work_.replicas * work_.images, work_.images};
  }

  /// Tells it of the operations of a device's passes, and of its update, as they are added.
  class PassMeaning : public PassMessages {
   public:
    PassMeaning(const PlacedPlanner& planner, const PlacedDevice& device)
        : planner_(planner), update_(device.update) {
      for (const PlacedStep& step : device.steps)
        for (const PlanOp& op : step.ops) ops_.push_back(&op);
    }
    void before(const Pass&, std::size_t, ComputeTasks&) override {}
    void after(const Pass&, std::size_t, ComputeTasks&) override {}
    void mean(const Pass& pass, std::size_t position, OpMeaning& meaning) const override {
      meaning = of(*ops_[position]);
      const OpId id = meaning.operation;
      if (id != no_meaning && planner_.graph_.operations[id].phase == Phase::update) return;
      meaning.micro_batch = pass.micro_batch;
      meaning.images = planner_.images_of(pass.micro_batch);
    }
    void mean_update(std::size_t position, OpMeaning& meaning) const override {
      meaning = of(update_[position]);
    }

   private:
    OpMeaning of(const PlanOp& op) const {
      return op.meaning == no_meaning ? OpMeaning{} : planner_.work_.meaning->operations[op.meaning];
    }

    const PlacedPlanner& planner_;
    const std::vector<PlanOp>& update_;
    std::vector<const PlanOp*> ops_;
  };

  std::uint32_t meaning_of(const PlacedMessage& message, std::uint32_t micro_batch) {
    if (!work_.meaning) return no_meaning;
    CommMeaning meaning = message.meaning;
    meaning.micro_batch = micro_batch;
    meaning.images = images_of(micro_batch);
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
    if (fresh) {
      Pattern& all = plan_.patterns.emplace_back();
      for (std::uint32_t r = 0; r < work_.replicas; ++r) {
        std::vector<EndpointId>& own = all.groups.emplace_back();
        for (const EndpointId device : group) own.push_back(endpoint(r, device));
      }
      all.rounds.push_back(std::move(round));
    }
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
    std::map<EndpointId, std::uint32_t> index_of;                               // of devices
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> receiver;  // by device, message: step
    for (std::uint32_t d = 0; d < work_.devices.size(); ++d) {
      for (const EndpointId member : work_.devices[d].members) index_of[member] = d;
      for (std::uint32_t s = 0; s < work_.devices[d].steps.size(); ++s)
        for (const std::uint32_t message : work_.devices[d].steps[s].receives) receiver[{d, message}] = s;
    }
    std::vector<std::vector<OrderedStep>> result(work_.devices.size());
    for (std::uint32_t d = 0; d < result.size(); ++d) {
      const Device& device = machine_.devices[work_.devices[d].members.front()];
      for (const PlacedStep& step : work_.devices[d].steps) {
        OrderedStep& ordered = result[d].emplace_back();
        ordered.forward = step.forward;
        ordered.after_sends = step.after_sends;
        for (const PlanOp& op : step.ops)
          ordered.time.then(cost_.queued_time(op.work, op.images, machine_, device));
        for (const std::uint32_t message : step.sends)
          for (const PlacedMessage::Part& part : work_.messages[message].parts)
            if (index_of.at(part.from) == d)
              ordered.sends.push_back(
                  {index_of.at(part.to), receiver.at({index_of.at(part.to), message}), delay_s(part)});
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

  /// Of a device and those that stand for it in the other replicas.
  void add_roles(const PlacedDevice& device, const std::vector<ScheduledStep>& order) {
    GroupSync& group = group_of(device);
    const Role program = program_of(device, order, group);
    std::vector<EndpointId> devices;
    for (std::uint32_t r = 0; r < work_.replicas; ++r)
      for (const EndpointId member : device.members) devices.push_back(endpoint(r, member));
    roles_.add(program, {std::move(devices), group.resident_bytes(), device.frozen_elements, &group},
               [&](const Device&, const DeviceType& type, std::size_t types) {
                 return types > 1 ? fmt::format("{} on {}", device.name, type.name) : device.name;
               });
  }

  /// Those that keep the device's parameters the same.
  GroupSync& group_of(const PlacedDevice& device) {
    Replicated parameters{{}, device.parameters};
    parameters.elements.resize(graph_.parameters.size(), 0.0);
    for (const EndpointId member : device.members) {
      std::vector<EndpointId>& replicas = parameters.groups.emplace_back();
      for (std::uint32_t r = 0; r < work_.replicas; ++r) replicas.push_back(endpoint(r, member));
    }
    return groups_.emplace_back(sync_, graph_, machine_, std::move(parameters), " of " + device.name, plan_);
  }

  Role program_of(const PlacedDevice& device, const std::vector<ScheduledStep>& order, GroupSync& group) {
    Role role;
    role.streams = {"compute"};
    if (!group.buckets().empty()) role.streams.emplace_back("all-reduce");
    const PlacedPass pass(device);
    PassMeaning meaning(*this, device);
    ReplicaProgram program(graph_, pass.stage, {&group}, role, 1, {{true, 0, work_.images, ""}},
                           plan_.meaning ? &meaning : nullptr, plan_.meaning.get());
    std::vector<std::uint32_t> left(device.steps.size(),
                                    work_.micro_batches);  // that have a step before them
    std::vector<TaskId> sent;
    for (const ScheduledStep& scheduled : order) {
      const std::uint32_t s = scheduled.step;
      const Pass of{true, scheduled.micro_batch, work_.images, suffix(scheduled.micro_batch), --left[s] == 0};
      add_step(device.steps[s], of, program, {pass.first[s], pass.first[s + 1]}, sent);
    }
    if (!order.empty()) program.end_passes();
    if (!device.update.empty()) program.update("");
    program.end();
    return role;
  }

  /// @param ops positions of the step's operations in the pass
  /// @param sent tasks of messages of which nobody knows yet that they are delivered
  void add_step(const PlacedStep& step, const Pass& pass, ReplicaProgram& program,
                std::pair<std::size_t, std::size_t> ops, std::vector<TaskId>& sent) const {
    ComputeTasks& tasks = program.tasks();
    const auto micro_batch = static_cast<std::uint32_t>(pass.micro_batch);
    const std::vector<TaskId> before = step.after_sends ? std::exchange(sent, {}) : std::vector<TaskId>{};
    if (step.receives.empty())
      for (const TaskId task : before) tasks.wait_for(task);
    for (const std::uint32_t message : step.receives)
      tasks.receive(plan_, comm_of(message, micro_batch), before);
    program.next_operations(pass, ops.first, ops.second);
    if (!step.name.empty()) tasks.close(step.name + pass.suffix);
    for (const std::uint32_t message : step.sends)
      sent.push_back(tasks.send(plan_, comm_of(message, micro_batch)));
  }

  PlacedWork work_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  const GradientSync& sync_;
  Plan plan_;
  DeviceRoles roles_{graph_, machine_, cost_, plan_};
  std::deque<GroupSync> groups_;  ///< by device; they stay where they are
  std::map<std::tuple<std::vector<EndpointId>, std::vector<std::pair<std::uint32_t, std::uint32_t>>,
                      std::vector<double>>,
           std::size_t>
      patterns_;  ///< equal ones once
};

}  // namespace

void PlacedWork::mean(PlanOp& op, const OpMeaning& of) {
  if (!meaning) return;
  op.meaning = static_cast<std::uint32_t>(meaning->operations.size());
  meaning->operations.push_back(of);
}

Plan plan_placed(PlacedWork work, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                 const GradientSync& sync) {
  return PlacedPlanner(std::move(work), graph, machine, cost, sync).build();
}

}  // namespace convoy::lowering
