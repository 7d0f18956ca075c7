// SPDX-License-Identifier: MIT
#include "sim/lowering/server_plan.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "sim/lowering/device_roles.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/replica_program.h"
#include "sim/lowering/served_passes.h"
#include "sim/lowering/server_hosts.h"
#include "sim/lowering/server_messages.h"
#include "sim/lowering/service_rule.h"

namespace convoy::inline lowering {
namespace {

constexpr int scatter_stream = 1, gather_stream = 2;

class ServerPlanner {
 public:
  ServerPlanner(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                const Stage& network, const StagedPasses& passes, const ServerExchange& exchange)
      : graph_(graph),
        machine_(machine),
        cost_(cost),
        passes_(passes),
        exchange_(exchange),
        network_(network),
        messages_(exchange, graph, machine, cost, plan_) {}

  Plan build() {
    plan_.images = passes_.images;
    if (passes_.meaning) mean_messages();
    for (const StageSlot& slot : passes_.stages.front().slots) add_workers(slot);
    if (messages_.is_service()) {
      add_service(exchange_, messages_, machine_, cost_, images_, plan_);
      if (messages_.size() > 0) plan_.roles.push_back({"server", exchange_.servers, {"cpu"}, {}, {}});
    } else if (!messages_.is_alone()) {
      add_server_hosts(machine_, exchange_, messages_, plan_);
    }
    return std::move(plan_);
  }

 private:
  bool sums_on_hosts() const { return exchange_.sums_on_hosts(); }
  bool by_owner() const { return exchange_.local_aggregation == LocalAggregation::owner; }
  bool by_ring() const { return exchange_.local_aggregation == LocalAggregation::ring; }
  /// Workers of a ring on one node update their own parts, and a device that is alone all. (What an owner
  /// updates for others is in the overhead of handing it out.)
  bool updates_parts(std::uint32_t devices) const {
    return messages_.is_alone() && (by_ring() || devices == 1);
  }

  // Meaning.

  /// Of the messages: a bucket each, of the same number.
  void mean_messages() {
    begin_meaning(passes_, machine_, plan_);
    Meaning& meaning = *plan_.meaning;
    const Compressor& compressor = messages_.compressor();
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const PushMessage& message = messages_.all()[m];
      const int shared = messages_.is_alone() && by_ring() ? 1 : 0;
      meaning.buckets.push_back({message.parameters, shared, compressor.sent_element_bytes(),
                                 compressor.kept_share(), compressor.coding(), compressor.coding_detail()});
      if (!messages_.is_alone())
        mean_ways(messages_.with_servers(m), CommMeaning::Kind::push, CommMeaning::Kind::pull, m);
      for (const auto& [devices, ways] : messages_.in_nodes()) {
        if (ways.empty()) continue;
        if (by_ring())
          mean_ways(ways[m], CommMeaning::Kind::scatter, CommMeaning::Kind::gather_parameters, m);
        else if (messages_.is_alone())
          mean_ways(ways[m], CommMeaning::Kind::push, CommMeaning::Kind::pull, m, true);
        else
          mean_ways(ways[m], CommMeaning::Kind::collect, CommMeaning::Kind::hand_out, m);
      }
    }
  }
  void mean_ways(const ServerWays& ways, CommMeaning::Kind in, CommMeaning::Kind back, std::size_t m,
                 bool updates = false) {
    mean_message(ways.in, {.kind = in, .bucket = static_cast<std::uint32_t>(m)});
    mean_message(ways.back, {.kind = back, .bucket = static_cast<std::uint32_t>(m), .updates = updates});
  }
  void mean_message(CommId comm, CommMeaning means) {
    plan_.communications[comm].meaning = static_cast<std::uint32_t>(plan_.meaning->communications.size());
    plan_.meaning->communications.push_back(std::move(means));
  }
  /// Of an update of parameters on a device.
  void mean_update(Task& task) const {
    if (!plan_.meaning) return;
    for (PlanOp& op : task.ops) {
      op.meaning = static_cast<std::uint32_t>(plan_.meaning->operations.size());
      plan_.meaning->operations.push_back({.operation = op.operation});
    }
  }

  // Workers.

  /// Where a worker is among those of its node, if it matters: type, devices of the node, place in it.
  struct Place {
    std::uint32_t type, devices, place;
    auto operator<=>(const Place&) const = default;
  };

  void add_workers(const StageSlot& slot) {
    std::map<Place, std::vector<EndpointId>> by_place;
    for (const EndpointId device : slot.devices) {
      const Host& host = machine_.hosts[machine_.devices[device].host];
      const bool in_node = exchange_.local_aggregation != LocalAggregation::none;
      by_place[{machine_.devices[device].type, in_node ? host.device_count : 0,
                by_owner() ? device - host.first_device : 0}]
          .push_back(device);
    }
    for (auto& [place, devices] : by_place) add_roles(slot, place, std::move(devices));
  }

  void add_roles(const StageSlot& slot, const Place& place, std::vector<EndpointId> devices) {
    StateBytes states =
        messages_.is_alone() ? graph_.resident_bytes() : without_optimizer(graph_.resident_bytes());
    for (const PushMessage& message : messages_.all())
      states[static_cast<std::size_t>(MemoryClass::gradients)] +=
          messages_.compressor().residual_bytes(message.bytes);
    const Role program = program_of(slot, place);
    roles_.add(program, {std::move(devices), states},
               [&](const Device&, const DeviceType& type, std::size_t) {
                 return fmt::format("{} on {}", slot.name, type.name);
               });
    double images = 0;
    for (const Pass& pass : slot.passes)
      if (!pass.backward) images += pass.images;
    images_.push_back(images);
  }

  Role program_of(const StageSlot& slot, const Place& place) {
    Role role;
    role.streams = by_ring() ? std::vector<std::string>{"compute", "scatter", "gather"}
                             : std::vector<std::string>{"compute", "communication"};
    const bool first_pulls = exchange_.pull == PullMode::at_first_use;
    std::vector<TaskId> pulled;
    for (std::size_t m = 0; first_pulls && m < messages_.size(); ++m)
      pulled.push_back(add_way_back(role, place, m, {}));
    ServedPasses served(graph_, network_, messages_, exchange_.overlap, pulled, plan_.meaning.get());
    ReplicaProgram program(graph_, network_, {}, role, 0, slot.passes, &served, plan_.meaning.get());
    for (std::size_t p = 0; p < slot.passes.size(); ++p) program.next_pass({}, "");
    std::vector<TaskId> summed;
    for (std::size_t m = 0; m < messages_.size(); ++m)
      summed.push_back(add_way_in(role, place, m, served.ready(m)));
    const Compressor& compressor = messages_.compressor();
    for (std::size_t m = 0; m < messages_.size() && compressor.active(); ++m)
      Compressor::add_release(program.tasks(), served.compressed(m), m, summed[m]);
    program.end();
    if (updates_parts(place.devices)) {
      const TaskId update = add_update(role, graph_, summed, 1.0 / place.devices);
      mean_update(role.program[update]);
      summed.assign(messages_.size(), update);
    }
    for (std::size_t m = 0; !first_pulls && m < messages_.size(); ++m)
      add_way_back(role, place, m, {summed[m]});
    return role;
  }

  static TaskId add_collective(Role& role, std::string name, CommId comm, int stream,
                               std::vector<TaskId> after) {
    const TaskId id = add_message(role, Task::Kind::collective, std::move(name), comm, std::move(after));
    role.program[id].stream = stream;
    return id;
  }

  /// Gradients of message m on their way. @return the task at whose end this worker's part is summed or gone
  TaskId add_way_in(Role& role, const Place& place, std::size_t m, TaskId ready) {
    if (!exchange_.sums_on_devices()) {
      const CommId in =
          (sums_on_hosts() ? messages_.in_node(place.devices, m) : messages_.with_servers(m)).in;
      return add_message(role, Task::Kind::send, fmt::format("push {}", m), in, {ready});
    }
    TaskId summed = ready;
    const bool owner = messages_.owns(place.devices, place.place, m);
    if (place.devices > 1) {
      const CommId in = messages_.in_node(place.devices, m).in;
      if (!owner) return add_message(role, Task::Kind::send, fmt::format("gradients {}", m), in, {ready});
      summed =
          by_ring()
              ? add_collective(role, fmt::format("reduce-scatter {}", m), in, scatter_stream, {ready})
              : add_message(role, Task::Kind::receive, fmt::format("node's gradients {}", m), in, {ready});
    }
    if (!messages_.is_alone() && owner)
      add_message(role, Task::Kind::send, fmt::format("push {}", m), messages_.with_servers(m).in,
                  {summed, ready});
    return summed;
  }

  /// The way back of message m to a worker.
  /// @param after what the device does before it passes parameters on that no server has sent
  /// @return the task at whose end its parameters are there
  TaskId add_way_back(Role& role, const Place& place, std::size_t m, std::vector<TaskId> after) {
    if (!exchange_.sums_on_devices()) {
      const CommId back =
          (sums_on_hosts() ? messages_.in_node(place.devices, m) : messages_.with_servers(m)).back;
      return add_message(role, Task::Kind::receive, fmt::format("pull {}", m), back, {});
    }
    const bool owner = messages_.owns(place.devices, place.place, m);
    if (owner && !messages_.is_alone())
      after = {add_message(role, Task::Kind::receive, fmt::format("pull {}", m),
                           messages_.with_servers(m).back, {})};
    if (place.devices == 1) return after.empty() ? add_compute(role, "no pull", {}, {}) : after.back();
    const CommId back = messages_.in_node(place.devices, m).back;
    if (by_ring())
      return add_collective(role, fmt::format("all-gather {}", m), back, gather_stream, std::move(after));
    return owner ? add_message(role, Task::Kind::send, fmt::format("hand out {}", m), back, std::move(after))
                 : add_message(role, Task::Kind::receive, fmt::format("parameters {}", m), back, {});
  }

  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  StagedPasses passes_;
  const ServerExchange& exchange_;
  const Stage& network_;
  Plan plan_;
  DeviceRoles roles_{graph_, machine_, cost_, plan_};
  ServerMessages messages_;
  std::vector<double> images_;  ///< of a step, by role of workers
};

}  // namespace

Plan plan_servers(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                  const Stage& network, const StagedPasses& passes, const ServerExchange& exchange) {
  return ServerPlanner(graph, machine, cost, network, passes, exchange).build();
}

}  // namespace convoy::lowering
