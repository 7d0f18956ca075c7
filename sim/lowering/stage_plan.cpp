// SPDX-License-Identifier: MIT
#include "sim/lowering/stage_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/lowering/device_roles.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/service_rule.h"
#include "sim/lowering/stage_messages.h"
#include "sim/plan/program_key.h"
#include "sim/plan/repetition.h"

namespace convoy::inline lowering {

/// What the programs of a network's replicas depend on.
struct ReplicaProgramKey {
  StagedPasses passes;          ///< without the devices
  GradientSync sync;            ///< without what only decides messages
  std::vector<Bucket> buckets;  ///< that it leads to
  double members;               ///< of the group
  bool ideal_transport;         ///< then buckets are not copied (GroupSync::is_copied)
  bool operator==(const ReplicaProgramKey&) const = default;
  std::size_t hash() const {
    std::size_t hash = std::hash<double>{}(members);
    for (const Bucket& bucket : buckets) hash = hash_with(hash, bucket.ready);
    for (const StageSlot& slot : passes.stages.front().slots)
      hash = hash_with(hash, std::hash<double>{}(slot.passes.empty() ? 0 : slot.passes.front().images));
    return hash;
  }
};

/// Programs, whose members, names and states are a plan's own, and the messages of their group.
struct ReplicaPrograms {
  std::vector<Role> roles;  ///< by slot
  std::vector<GroupSync::Sent> sent;
  std::size_t weight() const {
    std::size_t weight = 0;
    for (const Role& role : roles) weight += ProgramKey{role.program}.weight();
    return weight;
  }
};

class ReplicaProgramMemo : public Memo<ReplicaProgramKey, std::shared_ptr<const ReplicaPrograms>> {
 public:
  ReplicaProgramMemo() : Memo(most_kept_operations / 4) {}  // one of these a network
};

ReplicaProgramMemo& WholeNetwork::programs() const {
  if (!programs_) programs_ = std::make_shared<ReplicaProgramMemo>();
  return *programs_;
}

namespace {

enum Stream : int { receiving = 1, sending_activations, sending_gradients, summing };

class StagePlanner {
 public:
  StagePlanner(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
               const Stages& stages, StagedPasses passes, const GradientSync& sync,
               const WholeNetwork* network)
      : graph_(graph),
        machine_(machine),
        cost_(cost),
        stages_(stages.stages),
        passes_(std::move(passes)),
        sync_(sync),
        network_(network),
        messages_(stages.edges, passes_, sync.fidelity, plan_) {}

  ReportedPlan build() {
    plan_.images = passes_.images;
    if (passes_.meaning) begin_meaning(passes_, machine_, plan_);
    if (passes_.endless) begin_endless();
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      report_.stages.push_back({devices_of(s), stages_[s].layers, of(s).weight_versions, {}});
      std::vector<EndpointId> ranks = devices_of(s);
      std::sort(ranks.begin(), ranks.end());
      Replicated parameters = replicated(graph_, stages_[s], ranks);
      if (passes_.averaging) begin_averages(ranks, parameters);
      if (sync_.cycle_s > 0) parameters.made_s = ends_of_operations(s);
      groups_.emplace_back(sync_, graph_, machine_, std::move(parameters),
                           is_alone() ? "" : fmt::format(" of stage {}", s), plan_);
      if (network_ && is_alone() && !plan_.meaning && !passes_.endless && !averages_)
        add_replicas();
      else
        for (const StageSlot& slot : of(s).slots) add_slot(s, slot);
    }
    if (passes_.endless) end_endless();
    if (averages_ && !averages_->exchanges().empty())
      plan_.course = service_of_peers(averages_->exchanges(), plan_, machine_, cost_, images_of_devices());
    if (passes_.repeats) plan_ = with_more_listed(std::move(plan_), passes_.repeats->copied);
    return {std::move(plan_), std::move(report_)};
  }

 private:
  const StagedLayers& of(std::uint32_t s) const { return passes_.stages[s]; }
  std::int64_t slot_count(std::uint32_t s) const { return static_cast<std::int64_t>(of(s).slots.size()); }
  /// Replicas of the whole network.
  bool is_alone() const { return stages_.size() == 1; }

  std::vector<EndpointId> devices_of(std::uint32_t s) const {
    std::vector<EndpointId> devices;
    for (const StageSlot& slot : of(s).slots)
      devices.insert(devices.end(), slot.devices.begin(), slot.devices.end());
    return devices;
  }

  /// By operation of the graph: when it ends in a step on the slowest device; all at once where messages wait
  /// for the last of them.
  std::vector<double> ends_of_operations(std::uint32_t s) const {
    std::vector<double> slowest_s(graph_.operations.size(), 0.0);
    if (!sync_.overlap) return slowest_s;
    std::set<std::tuple<std::uint32_t, double, double>> seen;
    for (const StageSlot& slot : of(s).slots)
      for (const EndpointId e : slot.devices) {
        const Device& device = machine_.devices[e];
        if (slot.passes.empty() || !seen.emplace(device.type, device.speed, slot.passes.back().images).second)
          continue;
        std::vector<double> ends_s =
            operation_prices_s(graph_, slot.passes.back().images, cost_, machine_, device);
        std::partial_sum(ends_s.begin(), ends_s.end(), ends_s.begin());
        if (ends_s.back() > slowest_s.back()) slowest_s = std::move(ends_s);
      }
    return slowest_s;
  }

  // Averages.

  /// Sums of gradients stay within hosts, or there are none.
  void begin_averages(const std::vector<EndpointId>& devices, Replicated& parameters) {
    std::map<std::uint32_t, std::vector<EndpointId>> together;
    for (const EndpointId e : devices)
      together[passes_.averaging->sums_in_hosts ? machine_.devices[e].host : e].push_back(e);
    parameters.groups.clear();
    for (auto& [key, group] : together) {
      if (group.size() != together.begin()->second.size())
        throw InputError(sync_.algorithm_pos,
                         fmt::format("{}.sum_in_hosts: needs as many devices on every host; here {} and {}",
                                     sync_.path, together.begin()->second.size(), group.size()));
      parameters.groups.push_back(group);
    }
    averages_.emplace(*passes_.averaging, sync_, graph_, machine_, devices, parameters.elements, plan_);
    plan_.steps = static_cast<double>(averages_->steps());
    if (plan_.meaning) mean_own_images(parameters.groups);
  }

  /// Of a step of the whole network.
  std::vector<double> images_of_devices() const {
    std::vector<double> images(machine_.endpoint_count(), 0.0);
    for (const StageSlot& slot : of(0).slots)
      for (const Pass& pass : slot.passes)
        if (!pass.backward)
          for (const EndpointId e : slot.devices) images[e] += pass.images / plan_.steps;
    return images;
  }

  void mean_own_images(const std::vector<std::vector<EndpointId>>& groups) {
    const std::vector<double> images = images_of_devices();
    plan_.meaning->own_images.assign(machine_.endpoint_count(), 0.0);
    for (const std::vector<EndpointId>& group : groups) {
      double sum = 0;
      for (const EndpointId e : group) sum += images[e];
      for (const EndpointId e : group) plan_.meaning->own_images[e] = sum;
    }
  }

  void add_averaged(const std::vector<Pass>& passes, ReplicaProgram& program, Role& role) {
    std::int64_t step = 0;
    std::size_t first = 0;  // task of the step
    bool begins = true;
    for (const Pass& pass : passes) {
      if (std::exchange(begins, false)) averages_->begin_step(role, program.tasks(), step);
      add_pass(0, pass, program, role);
      if (!pass.completes) continue;
      averages_->before_update(program.tasks(), step);
      program.update(averages_->steps() > 1 ? fmt::format(" of step {}", step) : "");
      averages_->after_update(role, program.tasks(), step);
      while (role.program[first].kind != Task::Kind::compute) ++first;
      role.program[first].begins_step = step > 0;
      first = role.program.size();
      ++step, begins = true;
    }
  }

  // Endless runs.

  void begin_endless() {
    if (sync_.compression.kind == Compression::Kind::powersgd)
      throw InputError(sync_.compression.pos,
                       fmt::format("{}.compression: powersgd goes with pipelines that are flushed (weights: "
                                   "flush)",
                                   sync_.path));
    EndlessRun& run = plan_.course.emplace<EndlessRun>();
    run.steady_steps = static_cast<std::size_t>(passes_.endless->steady / passes_.endless->micro_batches);
    run.steps.resize(static_cast<std::size_t>(passes_.endless->all / passes_.endless->micro_batches));
  }

  void end_endless() {
    std::vector<double>& uses_per_step = std::get<EndlessRun>(plan_.course).uses_per_step;
    uses_per_step.resize(plan_.patterns.size());
    for (std::uint32_t s = 0; s < stages_.size(); ++s)
      for (const std::uint32_t pattern : groups_[s].patterns())
        uses_per_step[pattern] = static_cast<double>(passes_.endless->micro_batches) /
                                 static_cast<double>(slot_count(s) * of(s).share_of_update);
    messages_.count_uses(uses_per_step);
    // Of all tensors, each of whose gradients is that of one micro-batch.
    Staleness total;
    double tensors = 0;
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      const auto weight = static_cast<double>(stages_[s].parameters.size());
      total.mean += weight * report_.stages[s].staleness.mean;
      if (weight > 0) total.max = std::max(total.max, report_.stages[s].staleness.max);
      tensors += weight;
    }
    if (tensors > 0) total.mean /= tensors;
    report_.staleness = total;
  }

  // Programs.

  void add_slot(std::uint32_t s, const StageSlot& slot) { add_roles(s, slot, role_of(s, slot)); }

  /// The slots of the whole network, whose programs other plans may have had.
  void add_replicas() {
    GroupSync& group = groups_.front();
    const std::vector<StageSlot>& slots = of(0).slots;
    const std::shared_ptr<const ReplicaPrograms> programs =
        network_->programs().of(replica_key(group), [&](const ReplicaProgramKey&) {
          auto made = std::make_shared<ReplicaPrograms>();
          for (const StageSlot& slot : slots) made->roles.push_back(role_of(0, slot));
          made->sent = group.sent();
          return std::shared_ptr<const ReplicaPrograms>(std::move(made));
        });
    if (group.sent().empty()) group.send_again(programs->sent);
    for (std::size_t k = 0; k < slots.size(); ++k) add_roles(0, slots[k], programs->roles[k]);
  }

  /// What is taken out of the annotation here decides who sends what to whom, and nothing in a program.
  ReplicaProgramKey replica_key(const GroupSync& group) const {
    ReplicaProgramKey key{passes_, sync_, group.buckets(), group.members(), machine_.transport.ideal()};
    for (StageSlot& slot : key.passes.stages.front().slots) slot.devices.clear();
    key.sync.algorithm = {};
    key.sync.bucket_bytes = 0;
    key.sync.bucket_given = false;
    key.sync.first_bucket_bytes.reset();
    key.sync.fidelity = Fidelity::automatic;
    key.sync.path.clear();
    key.sync.algorithm_pos = key.sync.compression.pos = {};
    return key;
  }

  /// Of a slot's devices, without what differs between their types.
  Role role_of(std::uint32_t s, const StageSlot& slot) {
    Role role;
    role.streams = {"compute", "receive", "send activations", "send gradients", "all-reduce"};
    if (is_alone()) role.streams = {"compute", "communication"};
    if (sync_.cycle_s > 0) role.streams.emplace_back("agreement");
    ReplicaProgram program(graph_, stages_[s], {&groups_[s]}, role, is_alone() ? 1 : summing, slot.passes,
                           nullptr, plan_.meaning.get());
    if (passes_.endless) {
      add_endless(s, slot.passes, program, role);
    } else if (averages_) {
      add_averaged(slot.passes, program, role);
    } else {
      for (std::size_t p = 0; p < slot.passes.size(); ++p) {
        if (passes_.repeats) note_period(s, slot, p, role);
        add_pass(s, slot.passes[p], program, role);
      }
      program.update("");
    }
    program.end();
    return role;
  }

  /// The tasks of the first period are those from its first pass to that of the second.
  void note_period(std::uint32_t s, const StageSlot& slot, std::size_t pass, Role& role) const {
    const RepeatedPasses& repeats = *passes_.repeats;
    const auto of_period = static_cast<std::size_t>(2 * repeats.micro_batches / slot_count(s));
    const auto task = static_cast<TaskId>(role.program.size());
    if (pass == slot.first_repeated)
      role.repeats = RepeatedTasks{task, 0, repeats.listed, repeats.left_out, repeats.micro_batches};
    else if (pass == slot.first_repeated + of_period)
      role.repeats->tasks = task - role.repeats->first;
  }

  /// Updates follow the backward pass that completes their gradients; double-buffered weights are not needed
  /// at once, so that their sum has until the next backward pass, which adds to the gradients again.
  void add_endless(std::uint32_t s, const std::vector<Pass>& passes, ReplicaProgram& program, Role& role) {
    const std::int64_t share = of(s).share_of_update;
    const bool delayed = passes_.endless->delayed;
    std::int64_t forward = 0, updates = 0, due = 0;  // of this slot's, how many
    std::vector<std::int64_t> version;               // updates that its weights have seen, by micro-batch
    std::vector<double> missed;                      // updates that they had not, by gradient
    const auto update = [&] {
      if (due == updates) return;
      program.update(fmt::format(" #{}", updates));
      // Micro-batches that were first to fill the pipeline met newer weights than later ones do.
      if (updates * share >= 2 * of(s).in_flight + share)
        for (std::int64_t i = updates * share; i < due * share; ++i)
          missed.push_back(static_cast<double>(updates - version[static_cast<std::size_t>(i)]));
      updates = due;
    };
    for (const Pass& pass : passes) {
      if (pass.backward || !delayed) update();
      ends_[pass.micro_batch] = add_pass(s, pass, program, role);
      if (pass.completes) ++due;
      if (pass.backward) continue;
      version.push_back(delayed ? std::max<std::int64_t>(0, forward / share - 1) : updates);
      ++forward;
    }
    update();
    if (!missed.empty())
      report_.stages[s].staleness = {
          std::accumulate(missed.begin(), missed.end(), 0.0) / static_cast<double>(missed.size()),
          *std::max_element(missed.begin(), missed.end())};
  }

  TaskId add_message(Role& role, Task::Kind kind, std::size_t edge, const Pass& pass, int stream,
                     std::vector<TaskId> after) {
    const CommId comm = messages_.of(edge, pass);
    const TaskId task =
        convoy::add_message(role, kind, plan_.communications[comm].name, comm, std::move(after));
    role.program[task].stream = stream;
    return task;
  }

  /// What a task that ends with a pass is called; "": the next pass may go into the same.
  std::string task_name(std::uint32_t s, const Pass& pass) const {
    if (!passes_.shares_tasks)
      return fmt::format("{} #{}", pass.backward ? "backward" : "forward", pass.micro_batch);
    if (!pass.backward || groups_[s].zero() >= 2) return "";
    return pass.completes ? "compute to the end of backward" : "micro-batch" + pass.suffix;
  }

  /// @return the task at whose end the pass is done, where it has a name
  TaskId add_pass(std::uint32_t s, const Pass& pass, ReplicaProgram& program, Role& role) {
    std::vector<TaskId> received;
    for (std::size_t e = 0; e < messages_.edge_count(); ++e)
      if (messages_.goes(e, s, pass.backward, false))
        received.push_back(add_message(role, Task::Kind::receive, e, pass, receiving, {}));
    const TaskId done = program.next_pass(received, task_name(s, pass));
    for (std::size_t e = 0; e < messages_.edge_count(); ++e)
      if (messages_.goes(e, s, pass.backward, true))
        add_message(role, Task::Kind::send, e, pass, pass.backward ? sending_gradients : sending_activations,
                    {done});
    return done;
  }

  void add_roles(std::uint32_t s, const StageSlot& slot, const Role& program) {
    StateBytes states = groups_[s].resident_bytes();
    states[static_cast<std::size_t>(MemoryClass::weights)] +=
        (of(s).weight_versions - 1) * stages_[s].parameter_elements * element_bytes(graph_.options.precision);
    if (averages_) states[static_cast<std::size_t>(MemoryClass::optimizer)] += averages_->slow_bytes();
    const std::size_t first =
        roles_.add(program, {slot.devices, states, stages_[s].frozen_elements, &groups_[s]},
                   [&](const Device&, const DeviceType& type, std::size_t) {
                     return fmt::format("{} on {}", slot.name, type.name);
                   });
    for (std::size_t r = first; r < plan_.roles.size(); ++r)
      for (const auto& [micro_batch, task] : ends_)
        if ((micro_batch + 1) % passes_.endless->micro_batches == 0) {
          const auto step = static_cast<std::size_t>(micro_batch / passes_.endless->micro_batches);
          std::get<EndlessRun>(plan_.course).steps[step].push_back({static_cast<std::uint32_t>(r), task});
        }
    ends_.clear();
  }

  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  const std::vector<Stage>& stages_;
  StagedPasses passes_;
  const GradientSync& sync_;
  const WholeNetwork* network_;
  Plan plan_;
  DeviceRoles roles_{graph_, machine_, cost_, plan_};
  StrategyReport report_;
  std::deque<GroupSync> groups_;  ///< by stage; they stay where they are
  std::optional<ParameterAverages> averages_;
  StageMessages messages_;
  std::map<std::int64_t, TaskId> ends_;  ///< endless: by micro-batch of the slot, its backward pass
};

}  // namespace

ReportedPlan plan_stages(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                         const Stages& stages, StagedPasses passes, const GradientSync& sync,
                         const WholeNetwork* network) {
  return StagePlanner(graph, machine, cost, stages, std::move(passes), sync, network).build();
}

}  // namespace convoy::lowering
