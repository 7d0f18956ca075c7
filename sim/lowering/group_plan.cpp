// SPDX-License-Identifier: MIT
#include "sim/lowering/group_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "sim/lowering/device_roles.h"
#include "sim/lowering/group_program.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/shard_replicas.h"

namespace convoy::inline lowering {
namespace {

class GroupPlanner {
 public:
  GroupPlanner(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
               const GroupStages& stages, const std::vector<LayerSharding>& shardings,
               const GraphSchedule& schedule, const ExchangeOptions& communication, bool meaning)
      : graph_(graph),
        machine_(machine),
        cost_(cost),
        stages_(stages),
        shardings_(shardings),
        schedule_(schedule),
        how_(communication),
        devices_(stages.groups.front().front().size()),
        plan_(empty_plan(meaning)),
        roles_(graph, machine, cost, plan_),
        replicas_(plan_, graph, machine, stages.groups, stages.of_layer, shardings, communication.sync) {}

  ReportedPlan build() {
    plan_.images = schedule_.parts.front().total() * static_cast<double>(stages_.micro_batches) *
                   static_cast<double>(stages_.groups.front().size());
    if (plan_.meaning) begin_meaning();
    exchanges_ = add_exchanges(plan_, machine_, stages_.groups, schedule_, how_, stages_.micro_batches,
                               layouts_ ? &*layouts_ : nullptr);
    for (const GraphSchedule::Transfer& transfer : schedule_.transfers)
      edges_.insert({transfer.from, transfer.to, transfer.backward});
    for (std::uint32_t s = 0; s < stages_.groups.size(); ++s)
      for (auto& [device, devices] : alike(s)) add_roles(s, device, std::move(devices));
    std::vector<LayerGroup> layouts = replicas_.describe(schedule_, exchanges_);
    return {std::move(plan_), {.layouts = std::move(layouts)}};
  }

 private:
  static Plan empty_plan(bool meaning) {
    Plan plan;
    if (meaning) plan.meaning = std::make_shared<Meaning>();
    return plan;
  }

  /// Replicas differ by the images of their micro-batches, devices of one by their parts; images are wherever
  /// they are read.
  void begin_meaning() {
    Meaning& meaning = *plan_.meaning;
    meaning.lanes.assign(machine_.endpoint_count(), 0);
    meaning.positions.assign(machine_.endpoint_count(), 0);
    for (const std::vector<std::vector<EndpointId>>& of_stage : stages_.groups)
      for (std::uint32_t g = 0; g < of_stage.size(); ++g)
        for (std::uint32_t d = 0; d < devices_; ++d) {
          meaning.lanes[of_stage[g][d]] = g;
          meaning.positions[of_stage[g][d]] = d;
        }
    layouts_.emplace(graph_, shardings_, schedule_, meaning);
  }

  /// Of a stage: with the first image of its first group, where operations say what they mean.
  std::vector<Pass> passes_of(std::uint32_t stage) const {
    std::vector<Pass> passes = stages_.passes[stage];
    if (!layouts_) return passes;
    for (Pass& pass : passes)
      pass.first_image = images_of_groups(schedule_, stages_.groups[stage].size(), pass.micro_batch).first;
    return passes;
  }

  // Roles.

  /// Devices whose shares are the same everywhere, by the first device of a group that is like them.
  std::map<std::size_t, std::vector<EndpointId>> alike(std::uint32_t stage) {
    std::map<std::pair<std::vector<std::int64_t>, std::vector<GroupSync*>>, std::size_t> first;
    std::vector<std::size_t> like(devices_);
    const std::vector<const std::vector<std::int64_t>*> counts = all_counts();
    for (std::size_t d = 0; d < devices_; ++d) {
      std::vector<std::int64_t> shares;
      std::vector<GroupSync*> replicas = replicas_.of(stage, d);
      for (const std::vector<std::int64_t>* each : counts) shares.push_back((*each)[d]);
      like[d] = first.emplace(std::pair{std::move(shares), std::move(replicas)}, d).first->second;
    }
    std::map<std::size_t, std::vector<EndpointId>> alike;
    for (std::size_t d = 0; d < devices_; ++d)
      for (const std::vector<EndpointId>& group : stages_.groups[stage]) alike[like[d]].push_back(group[d]);
    for (auto& [first_like, devices] : alike) std::sort(devices.begin(), devices.end());
    return alike;
  }

  /// Everything by which devices may differ, each once.
  std::vector<const std::vector<std::int64_t>*> all_counts() const {
    std::vector<const std::vector<std::int64_t>*> counts;
    std::set<const void*> known;
    const auto add = [&](const std::vector<std::int64_t>& each) {
      if (known.insert(&each).second) counts.push_back(&each);
    };
    const auto add_sharding = [&](const Sharding& sharding) {
      if (sharding.shards) add(sharding.shards->counts);
      if (sharding.grid) add(sharding.grid->heights), add(sharding.grid->widths);
    };
    for (const LayerSharding& sharding : shardings_) {
      add_sharding(sharding.output);
      for (const InputSharding& in : sharding.inputs) {
        add_sharding(in.needed);
        if (in.halo) add(in.halo->counts);
      }
    }
    for (const ImagePart& part : schedule_.parts) {
      add(part.images.counts);
      add(part.loss.counts);
    }
    return counts;
  }

  /// @param device of a group, by position, which the devices are like
  void add_roles(std::uint32_t stage, std::size_t device, std::vector<EndpointId> devices) {
    const std::vector<GroupSync*> replicas = replicas_.of(stage, device);
    StateBytes states{};
    for (const GroupSync* group : replicas)
      for (std::size_t c = 0; c < memory_class_count; ++c) states[c] += group->resident_bytes()[c];
    roles_.add(program_of(stage, device, replicas),
               {std::move(devices), states, frozen_elements_on(stage, device), only_group(replicas)},
               [](const Device& first, const DeviceType&, std::size_t) { return "like " + first.name; });
  }

  Role program_of(std::uint32_t stage, std::size_t device, const std::vector<GroupSync*>& replicas) {
    Role role;
    role.streams = {"compute", "all-reduce of gradients", "exchange"};
    if (stages_.groups.size() > 1)
      role.streams.insert(role.streams.end(), {"receive", "send activations", "send gradients"});
    const std::vector<Pass> passes = passes_of(stage);
    GroupProgram program(
        {graph_, shardings_, schedule_, exchanges_, plan_, stages_.of_layer, layouts_ ? &*layouts_ : nullptr},
        stage, device, replicas, passes, role);
    for (const Pass& pass : passes) add_pass(program, role, stage, device, pass);
    program.update();
    return role;
  }

  std::uint32_t stage_of(std::size_t layer) const {
    return stages_.of_layer.empty() ? 0 : stages_.of_layer[layer];
  }

  double frozen_elements_on(std::uint32_t stage, std::size_t device) const {
    double sum = 0;
    for (std::size_t i = 0; i < shardings_.size(); ++i)
      if (const Layer& layer = graph_.model.layers[i]; layer.frozen && stage_of(i) == stage)
        sum += parameters_on(layer, shardings_[i], device);
    return sum;
  }

  /// The group that sums a device's gradients, where there is one and nothing else is exchanged. (Of one
  /// process whose devices do more no measurement is known.)
  const GroupSync* only_group(const std::vector<GroupSync*>& replicas) const {
    for (const GraphSchedule::Exchange& exchange : schedule_.exchanges)
      if (exchange.is_needed()) return nullptr;
    const GroupSync* only = nullptr;
    for (const GroupSync* group : replicas) {
      if (group->buckets().empty()) continue;
      if (only) return nullptr;
      only = group;
    }
    return only;
  }

  void add_pass(GroupProgram& program, Role& role, std::uint32_t stage, std::size_t device,
                const Pass& pass) {
    std::vector<TaskId> received;
    for (const Edge& edge : edges_)
      if (std::get<2>(edge) == pass.backward && std::get<1>(edge) == stage)
        if (const CommId comm = message(edge, pass.micro_batch, device); comm != none)
          received.push_back(add(role, Task::Kind::receive, comm, GroupProgram::receiving, {}));
    const bool alone = stages_.groups.size() == 1;
    const TaskId done = program.next_pass(
        pass, received,
        !alone ? fmt::format("{}{}", pass.backward ? "backward" : "forward", pass.suffix)
        : pass.backward && how_.sync.zero < 2 ? "compute to the end of backward" + pass.suffix
                                              : std::string{});
    for (const Edge& edge : edges_) {
      if (std::get<2>(edge) != pass.backward || std::get<0>(edge) != stage) continue;
      const CommId comm = message(edge, pass.micro_batch, device);
      if (comm == none) continue;
      std::vector<TaskId> after{done};
      for (const GraphSchedule::Transfer& transfer : schedule_.transfers)
        if (Edge{transfer.from, transfer.to, transfer.backward} == edge)
          for (const TaskId task : program.tasks_of(transfer.waits)) after.push_back(task);
      add(role, Task::Kind::send, comm,
          pass.backward ? GroupProgram::sending_gradients : GroupProgram::sending_activations,
          std::move(after));
    }
  }

  TaskId add(Role& role, Task::Kind kind, CommId comm, int stream, std::vector<TaskId> after) const {
    const TaskId task = add_message(role, kind, plan_.communications[comm].name, comm, std::move(after));
    role.program[task].stream = stream;
    return task;
  }

  // Messages between stages: devices with equally much to send have one communication.

  using Edge = std::tuple<std::uint32_t, std::uint32_t, bool>;  ///< from, to, backward

  double bytes_sent(const Edge& edge, std::size_t device) const {
    double bytes = 0;
    for (const GraphSchedule::Transfer& transfer : schedule_.transfers)
      if (Edge{transfer.from, transfer.to, transfer.backward} == edge)
        bytes +=
            schedule_
                .memory({MemoryClass::activations, transfer.bytes_per_image, 0, transfer.sharding, 0}, device)
                .bytes_fixed;
    return bytes;
  }

  CommId message(const Edge& edge, std::int64_t micro_batch, std::size_t device) {
    const double bytes = bytes_sent(edge, device);
    if (bytes == 0) return none;
    const auto [it, fresh] = stage_messages_.try_emplace({edge, micro_batch, bytes});
    if (!fresh) return it->second;
    const auto [from, to, backward] = edge;
    const auto [pattern, fresh_pattern] =
        stage_patterns_.try_emplace({edge, bytes}, static_cast<std::uint32_t>(plan_.patterns.size()));
    if (fresh_pattern) {
      Pattern pairs{{}, {{{{0, 1}}, {1.0}, 1}}};
      for (std::size_t d = 0; d < devices_; ++d)
        for (std::size_t r = 0; r < stages_.groups[from].size(); ++r)
          if (bytes_sent(edge, d) == bytes)
            pairs.groups.push_back({stages_.groups[from][r][d], stages_.groups[to][r][d]});
      plan_.patterns.push_back(std::move(pairs));
    }
    plan_.communications.push_back(
        {fmt::format("{} #{}, stage {} to {}", backward ? "gradients" : "activations", micro_batch, from, to),
         pattern->second, bytes, how_.sync.fidelity, 0});
    if (layouts_) mean(edge, micro_batch);
    return it->second = static_cast<CommId>(plan_.communications.size() - 1);
  }

  /// Of the message between stages that was added last.
  void mean(const Edge& edge, std::int64_t micro_batch) {
    CommMeaning meaning;
    for (const GraphSchedule::Transfer& transfer : schedule_.transfers) {
      if (Edge{transfer.from, transfer.to, transfer.backward} != edge) continue;
      CommMeaning::Result result = transfer.result;
      result.from = result.to = layouts_->of_tensor(transfer.sharding, 0);
      meaning.results.push_back(result);
    }
    meaning.micro_batch = micro_batch;
    meaning.images = images_of_groups(schedule_, stages_.groups.front().size(), micro_batch);
    plan_.communications.back().meaning = static_cast<std::uint32_t>(plan_.meaning->communications.size());
    plan_.meaning->communications.push_back(std::move(meaning));
  }

  static constexpr CommId none = GraphSchedule::none;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  const GroupStages& stages_;
  const std::vector<LayerSharding>& shardings_;
  const GraphSchedule& schedule_;
  const ExchangeOptions& how_;
  std::size_t devices_;  ///< of a group
  Plan plan_;
  DeviceRoles roles_;
  ShardReplicas replicas_;
  std::optional<PartLayouts> layouts_;  ///< where tasks say what they mean
  ExchangeComms exchanges_;
  std::set<Edge> edges_;
  std::map<std::tuple<Edge, std::int64_t, double>, CommId> stage_messages_;  ///< by micro-batch and bytes
  std::map<std::pair<Edge, double>, std::uint32_t> stage_patterns_;
};

}  // namespace

ReportedPlan plan_groups(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                         const GroupStages& stages, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const ExchangeOptions& communication, bool meaning) {
  return GroupPlanner(graph, machine, cost, stages, shardings, schedule, communication, meaning).build();
}

}  // namespace convoy::lowering
