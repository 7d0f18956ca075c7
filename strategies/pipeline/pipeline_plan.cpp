// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/lowering/grouped_launch.h"
#include "sim/lowering/held_normalization.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/replica_program.h"

namespace convoy::inline strategies {
namespace {

enum Stream : int { receiving = 1, sending_activations, sending_gradients, summing };
const std::vector<std::string> stream_names{"compute", "receive", "send activations", "send gradients",
                                            "all-reduce"};

/// How much of an endless run is simulated, in micro-batches. A pipeline of S slots is full after S of them;
/// stages that take turns, and stages that wait for what they may have under way, repeat themselves after as
/// many as they are or hold; messages that pile up on links need more. The numbers are chosen, not derived:
/// with them the mean of a steady stretch agrees with the closed forms of
/// tests/laws/test_endless_pipelines.cpp.
struct Stretch {
  std::int64_t steady;  ///< whole steps of which the first stage has something to do to their end
  std::int64_t all;     ///< and as many as may be under way then

  static constexpr std::int64_t rounds_to_fill = 4;        ///< of all slots, before a stretch is steady
  static constexpr std::int64_t rounds_of_turns = 4;       ///< of stages that take turns, in the mean
  static constexpr std::int64_t least_micro_batches = 96;  ///< in the mean, however short the turns are
  static constexpr std::int64_t longest_turns = 64;  ///< of longer ones the mean is over a part of a round
  /// Steps in the mean: as many as these micro-batches make, but not fewer or more than the limits.
  static constexpr std::int64_t micro_batches_of_steps = 256, fewest_steps = 12, most_steps = 48;

  Stretch(const PipelineShape& shape, const std::vector<StageChoice>& choices) {
    const std::int64_t steps =
        std::clamp(micro_batches_of_steps / shape.micro_batches, fewest_steps, most_steps);
    const auto slots = static_cast<std::int64_t>(shape.slots.size());
    std::int64_t turns = 1;
    for (const StageChoice& choice : choices)
      turns = std::min<std::int64_t>(std::lcm<std::int64_t>(turns, choice.slots), longest_turns);
    const auto whole = [&](std::int64_t micro_batches) {
      return (micro_batches + shape.micro_batches - 1) / shape.micro_batches * shape.micro_batches;
    };
    steady = std::max(whole(rounds_to_fill * slots + std::max(least_micro_batches, rounds_of_turns * turns)),
                      steps * shape.micro_batches);
    all = steady + whole(in_flight(shape, 0, choices.front().slots) * choices.front().slots);
  }
};

class PipelinePlanner {
 public:
  PipelinePlanner(const StrategyInput& input, const PipelineShape& shape,
                  const std::vector<StageChoice>& choices, const Stages& stages, const GradientSync& sync)
      : input_(input),
        shape_(shape),
        choices_(choices),
        stages_(stages),
        sync_(sync),
        edges_(stages.edges),
        stretch_(shape, choices),
        micro_batches_(shape.endless() ? stretch_.all : shape.micro_batches) {
    std::uint32_t before = 0;
    for (const StageChoice& choice : choices) {
      first_slot_.push_back(before);
      before += choice.slots;
    }
  }

  ReportedPlan build() {
    plan_.images = shape_.images * static_cast<double>(shape_.micro_batches) *
                   static_cast<double>(shape_.slots.front().size());
    if (shape_.endless()) begin_endless();
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const auto versions =
          static_cast<std::uint32_t>(weight_versions(shape_, first_slot_[s], choices_[s].slots));
      report_.stages.push_back({devices_of(s), stages_.stages[s].layers, versions, {}});
      groups_.emplace_back(sync_, input_.graph, input_.machine,
                           replicated(input_.graph, stages_.stages[s], devices_of(s)),
                           fmt::format(" of stage {}", s), plan_);
      for (std::uint32_t k = 0; k < choices_[s].slots; ++k) add_slot(s, k);
    }
    if (shape_.endless()) end_endless();
    return {std::move(plan_), std::move(report_)};
  }

 private:
  const std::vector<EndpointId>& slot(std::uint32_t s, std::int64_t micro_batch) const {
    return shape_.slots[first_slot_[s] + static_cast<std::uint32_t>(micro_batch) % choices_[s].slots];
  }

  std::vector<EndpointId> devices_of(std::uint32_t s) const {
    std::vector<EndpointId> devices;
    for (std::uint32_t k = 0; k < choices_[s].slots; ++k)
      devices.insert(devices.end(), slot(s, k).begin(), slot(s, k).end());
    return devices;
  }

  // Endless runs.

  /// Stages that send each other nothing keep in step by messages without bytes, as do those that have no
  /// gradient to send: else one of them could run ahead for ever.
  void begin_endless() {
    EndlessRun& run = plan_.course.emplace<EndlessRun>();
    run.steady_steps = static_cast<std::size_t>(stretch_.steady / shape_.micro_batches);
    run.steps.resize(static_cast<std::size_t>(micro_batches_ / shape_.micro_batches));
    for (std::uint32_t s = 0; s + 1 < choices_.size(); ++s)
      if (std::none_of(edges_.begin(), edges_.end(),
                       [&](const StageEdge& edge) { return edge.from == s && edge.to == s + 1; }))
        edges_.push_back({s, s + 1});
  }

  void end_endless() {
    const auto per_step = [&](std::int64_t micro_batches) {
      return static_cast<double>(shape_.micro_batches) / static_cast<double>(micro_batches);
    };
    std::vector<double>& uses_per_step = std::get<EndlessRun>(plan_.course).uses_per_step;
    uses_per_step.resize(plan_.patterns.size());
    for (std::uint32_t s = 0; s < choices_.size(); ++s)
      for (const std::uint32_t pattern : groups_[s].patterns())
        uses_per_step[pattern] = per_step(choices_[s].slots * share_of_update(shape_, choices_[s].slots));
    for (const auto& [key, pattern] : patterns_) {
      const StageEdge& edge = edges_[std::get<0>(key)];
      uses_per_step[pattern] =
          per_step(std::lcm<std::int64_t>(choices_[edge.from].slots, choices_[edge.to].slots));
    }
    // Of all tensors, each of whose gradients is that of one micro-batch.
    Staleness total;
    double tensors = 0;
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const auto weight = static_cast<double>(stages_.stages[s].parameters.size());
      total.mean += weight * report_.stages[s].staleness.mean;
      if (weight > 0) total.max = std::max(total.max, report_.stages[s].staleness.max);
      tensors += weight;
    }
    if (tensors > 0) total.mean /= tensors;
    report_.staleness = total;
  }

  // Communications. Those of one micro-batch have one for each edge between stages and direction.

  CommId message(std::size_t edge, bool backward, std::int64_t micro_batch) {
    const auto [it, fresh] = messages_.try_emplace({edge, backward, micro_batch});
    if (!fresh) return it->second;
    const StageEdge& e = edges_[edge];
    const std::uint32_t from = backward ? e.to : e.from, to = backward ? e.from : e.to;
    const std::vector<EndpointId>&senders = slot(from, micro_batch), &receivers = slot(to, micro_batch);
    const auto [pattern, fresh_pattern] =
        patterns_.try_emplace({edge, backward, senders.front(), receivers.front()}, plan_.patterns.size());
    if (fresh_pattern) {
      Pattern pairs{{}, {{{{0, 1}}, {1.0}, 1}}};
      for (std::size_t r = 0; r < senders.size(); ++r) pairs.groups.push_back({senders[r], receivers[r]});
      plan_.patterns.push_back(std::move(pairs));
    }
    plan_.communications.push_back(
        {fmt::format("{} #{}, stage {} to {}", backward ? "gradients" : "activations", micro_batch, from, to),
         static_cast<std::uint32_t>(pattern->second),
         shape_.images * (backward ? e.backward_bytes : e.forward_bytes), sync_.fidelity, 0});
    return it->second = static_cast<CommId>(plan_.communications.size() - 1);
  }

  // Programs.

  void add_slot(std::uint32_t s, std::uint32_t k) {
    const std::vector<Pass> passes = passes_of_slot(shape_, choices_[s], first_slot_[s], k, micro_batches_,
                                                    !stages_.stages[s].backward.empty());
    Role role;
    role.streams = stream_names;
    ReplicaProgram program(input_.graph, stages_.stages[s], {&groups_[s]}, role, summing, passes);
    if (shape_.endless()) {
      add_endless(s, passes, program, role);
    } else {
      for (const Pass& pass : passes) add_pass(s, pass, program, role);
      program.update("");
    }
    program.end();
    add_roles(s, k, std::move(role));
  }

  /// Updates follow the backward pass that completes their gradients; double-buffered weights are not needed
  /// at once, so that their sum has until the next backward pass, which adds to the gradients again.
  void add_endless(std::uint32_t s, const std::vector<Pass>& passes, ReplicaProgram& program, Role& role) {
    const std::int64_t share = share_of_update(shape_, choices_[s].slots);
    const std::int64_t flying = in_flight(shape_, first_slot_[s], choices_[s].slots);
    const bool delayed = shape_.weights == Weights::double_buffered && shape_.stages > 1;
    std::int64_t forward = 0, updates = 0, due = 0;  // of this slot's, how many
    std::vector<std::int64_t> version;               // updates that its weights have seen, by micro-batch
    std::vector<double> missed;                      // updates that they had not, by gradient
    const auto update = [&] {
      if (due == updates) return;
      program.update(fmt::format(" #{}", updates));
      // Micro-batches that were first to fill the pipeline met newer weights than later ones do.
      if (updates * share >= 2 * flying + share)
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
    const CommId comm = message(edge, pass.backward, pass.micro_batch);
    const TaskId task =
        convoy::add_message(role, kind, plan_.communications[comm].name, comm, std::move(after));
    role.program[task].stream = stream;
    return task;
  }

  /// @return the task at whose end the pass is done
  TaskId add_pass(std::uint32_t s, const Pass& pass, ReplicaProgram& program, Role& role) {
    std::vector<TaskId> received;
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (goes(e, s, pass.backward, false))
        received.push_back(add_message(role, Task::Kind::receive, e, pass, receiving, {}));
    const TaskId done = program.next_pass(
        received, fmt::format("{} #{}", pass.backward ? "backward" : "forward", pass.micro_batch));
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (goes(e, s, pass.backward, true))
        add_message(role, Task::Kind::send, e, pass, pass.backward ? sending_gradients : sending_activations,
                    {done});
    return done;
  }

  /// Whether an edge's message of a pass leaves (or reaches) a stage.
  bool goes(std::size_t edge, std::uint32_t s, bool backward, bool leaves) const {
    const StageEdge& e = edges_[edge];
    return (shape_.endless() || (backward ? e.backward_bytes : e.forward_bytes) > 0) &&
           s == (backward == leaves ? e.to : e.from);
  }

  /// One role for each type of device in the slot: what the system reserves differs.
  void add_roles(std::uint32_t s, std::uint32_t k, const Role& program) {
    std::map<std::uint32_t, std::vector<EndpointId>> by_type;
    for (const EndpointId e : slot(s, k)) by_type[input_.machine.devices[e].type].push_back(e);
    const StateBytes states = groups_[s].resident_bytes();
    const double version_bytes =
        stages_.stages[s].parameter_elements * element_bytes(input_.graph.options.precision);
    for (auto& [type, members] : by_type) {
      Role role = program;
      const DeviceType& device_type = input_.machine.device_types[type];
      // An endless run's steps are told by the numbers of tasks, which holding changes.
      if (!shape_.endless())
        hold_normalizations(plan_, role, groups_[s], input_.graph, input_.machine, input_.cost, device_type);
      add_grouped_launches(role, groups_[s], input_.graph, input_.machine, input_.cost, device_type);
      role.name = fmt::format("stage {}{} on {}", s,
                              choices_[s].slots > 1 ? fmt::format(" replica {}", k) : std::string{},
                              device_type.name);
      role.members = std::move(members);
      for (std::size_t c = 0; c < memory_class_count; ++c) role.resident_bytes[c] += states[c];
      role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] += device_type.reserved_bytes;
      role.resident_bytes[static_cast<std::size_t>(MemoryClass::weights)] +=
          (report_.stages[s].weight_versions - 1) * version_bytes;
      plan_.roles.push_back(std::move(role));
      for (const auto& [micro_batch, task] : ends_)
        if ((micro_batch + 1) % shape_.micro_batches == 0) {
          const auto step = static_cast<std::size_t>(micro_batch / shape_.micro_batches);
          std::get<EndlessRun>(plan_.course)
              .steps[step]
              .push_back({static_cast<std::uint32_t>(plan_.roles.size() - 1), task});
        }
    }
    ends_.clear();
  }

  const StrategyInput& input_;
  const PipelineShape& shape_;
  const std::vector<StageChoice>& choices_;
  const Stages& stages_;
  const GradientSync& sync_;
  std::vector<StageEdge> edges_;
  Stretch stretch_;
  std::int64_t micro_batches_;             ///< that are simulated
  std::vector<std::uint32_t> first_slot_;  ///< by stage
  Plan plan_;
  StrategyReport report_;
  std::deque<GroupSync> groups_;  ///< by stage; they stay where they are
  std::map<std::tuple<std::size_t, bool, std::int64_t>, CommId> messages_;  ///< edge, backward, micro-batch
  std::map<std::tuple<std::size_t, bool, EndpointId, EndpointId>, std::size_t> patterns_;
  std::map<std::int64_t, TaskId> ends_;  ///< endless: by micro-batch of the slot, its backward pass
};

}  // namespace

std::vector<Pass> passes_of_slot(const PipelineShape& shape, const StageChoice& choice,
                                 std::uint32_t slots_before, std::uint32_t slot, std::int64_t micro_batches,
                                 bool can_recompute) {
  std::vector<Pass> passes;
  for (const MicroBatchPass& pass : order_of_passes(shape, slots_before, choice.slots, slot, micro_batches))
    passes.push_back({pass.backward, pass.micro_batch, shape.images, {}});
  const std::int64_t share = share_of_update(shape, choice.slots);
  std::int64_t backward = 0;
  for (Pass& pass : passes) {
    if (micro_batches > 1) pass.suffix = fmt::format(" #{}", pass.micro_batch);
    pass.recomputes = can_recompute && recomputes(shape, pass.micro_batch, micro_batches);
    if (!pass.backward) continue;
    ++backward;
    // The last updates, for which some slots have no micro-batch any more, are left out by all.
    pass.completes = shape.endless() && backward % share == 0 && backward * choice.slots <= micro_batches;
  }
  if (!shape.endless()) passes.back().completes = true;
  return passes;
}

ReportedPlan plan_pipeline(const StrategyInput& input, const PipelineShape& shape,
                           const std::vector<StageChoice>& choices, const Stages& stages,
                           const GradientSync& sync) {
  return PipelinePlanner(input, shape, choices, stages, sync).build();
}

}  // namespace convoy::strategies
