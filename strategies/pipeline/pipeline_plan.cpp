// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace convoy {
namespace {

enum Stream : int { computing, receiving, sending_activations, sending_gradients, summing };
const std::vector<std::string> stream_names{"compute", "receive", "send activations", "send gradients",
                                            "all-reduce"};

/// One pass of one micro-batch.
struct Pass {
  bool backward;
  std::int64_t micro_batch;
};

/// @param flying forward passes ahead of the first backward pass
std::vector<Pass> order_passes(const std::vector<std::int64_t>& micro_batches, std::size_t flying,
                               bool last_first) {
  std::vector<Pass> passes;
  std::size_t forward = 0;
  for (std::size_t backward = 0; backward < micro_batches.size(); ++backward) {
    for (; forward < std::min(backward + flying, micro_batches.size()); ++forward)
      passes.push_back({false, micro_batches[forward]});
    passes.push_back({true, micro_batches[last_first ? micro_batches.size() - 1 - backward : backward]});
  }
  return passes;
}

/// How much of an endless run is simulated, in micro-batches. A pipeline of S slots is full after S of them;
/// stages that take turns, and stages that wait for what they may have under way, repeat themselves after as
/// many as they are or hold; messages that pile up on links need more.
struct Stretch {
  std::int64_t steady;  ///< whole steps of which the first stage has something to do to their end
  std::int64_t all;     ///< and as many as may be under way then

  Stretch(const PipelineShape& shape, const std::vector<StageChoice>& choices) {
    constexpr std::int64_t least = 96, longest_turns = 64;
    const std::int64_t least_steps = std::clamp<std::int64_t>(256 / shape.micro_batches, 12, 48);
    const auto slots = static_cast<std::int64_t>(shape.slots.size());
    std::int64_t turns = 1;
    for (const StageChoice& choice : choices)
      turns = std::min<std::int64_t>(std::lcm<std::int64_t>(turns, choice.slots), longest_turns);
    const auto whole = [&](std::int64_t micro_batches) {
      return (micro_batches + shape.micro_batches - 1) / shape.micro_batches * shape.micro_batches;
    };
    steady = std::max(whole(4 * slots + std::max(least, 4 * turns)), least_steps * shape.micro_batches);
    all = steady + whole(in_flight(shape, 0, choices.front().slots) * choices.front().slots);
  }
};

class Builder {
 public:
  Builder(const StrategyInput& input, const PipelineShape& shape, const std::vector<StageChoice>& choices,
          const Stages& stages, AllReduceAlgorithm algorithm, Fidelity fidelity)
      : input_(input),
        shape_(shape),
        choices_(choices),
        stages_(stages),
        algorithm_(algorithm),
        fidelity_(fidelity),
        edges_(stages.edges),
        stretch_(shape, choices),
        micro_batches_(shape.endless() ? stretch_.all : shape.micro_batches) {
    std::uint32_t before = 0;
    for (const StageChoice& choice : choices) {
      first_slot_.push_back(before);
      before += choice.slots;
    }
  }

  Plan build() {
    plan_.images = shape_.images * static_cast<double>(shape_.micro_batches) *
                   static_cast<double>(shape_.slots.front().size());
    if (shape_.endless()) begin_endless();
    add_sum_patterns();
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const auto versions =
          static_cast<std::uint32_t>(weight_versions(shape_, first_slot_[s], choices_[s].slots));
      plan_.stages.push_back({devices_of(s), stages_.stages[s].layers, versions, {}});
      for (std::uint32_t k = 0; k < choices_[s].slots; ++k) add_slot(s, k);
    }
    if (shape_.endless()) end_endless();
    return std::move(plan_);
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
    plan_.endless.emplace();
    plan_.endless->steady_steps = static_cast<std::size_t>(stretch_.steady / shape_.micro_batches);
    plan_.endless->steps.resize(static_cast<std::size_t>(micro_batches_ / shape_.micro_batches));
    for (std::uint32_t s = 0; s + 1 < choices_.size(); ++s)
      if (std::none_of(edges_.begin(), edges_.end(),
                       [&](const StageEdge& edge) { return edge.from == s && edge.to == s + 1; }))
        edges_.push_back({s, s + 1});
  }

  void end_endless() {
    const auto per_step = [&](std::int64_t micro_batches) {
      return static_cast<double>(shape_.micro_batches) / static_cast<double>(micro_batches);
    };
    plan_.endless->uses_per_step.resize(plan_.patterns.size());
    for (const auto& [s, pattern] : sum_patterns_)
      plan_.endless->uses_per_step[pattern] =
          per_step(choices_[s].slots * share_of_update(shape_, choices_[s].slots));
    for (const auto& [key, pattern] : patterns_) {
      const StageEdge& edge = edges_[std::get<0>(key)];
      plan_.endless->uses_per_step[pattern] =
          per_step(std::lcm<std::int64_t>(choices_[edge.from].slots, choices_[edge.to].slots));
    }
    // Of all tensors, each of whose gradients is that of one micro-batch.
    Staleness total;
    double tensors = 0;
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const auto weight = static_cast<double>(stages_.stages[s].parameter_tensors);
      total.mean += weight * plan_.stages[s].staleness.mean;
      if (weight > 0) total.max = std::max(total.max, plan_.stages[s].staleness.max);
      tensors += weight;
    }
    if (tensors > 0) total.mean /= tensors;
    plan_.staleness = total;
  }

  // Communications. Those of one micro-batch have one for each edge between stages and direction.

  void add_sum_patterns() {
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const std::vector<EndpointId> ranks = devices_of(s);
      const double bytes = sum_bytes(s);
      if (ranks.size() < 2 || bytes == 0) continue;
      sum_patterns_.emplace(s, plan_.patterns.size());
      plan_.patterns.push_back(all_reduce_pattern(algorithm_, ranks, input_.machine, bytes));
    }
  }

  double sum_bytes(std::uint32_t s) const {
    return stages_.stages[s].parameter_elements * element_bytes(input_.graph.options.precision);
  }

  /// The all-reduce of a stage's n-th update.
  CommId sum(std::uint32_t s, std::int64_t n) {
    const auto [it, fresh] = sums_.try_emplace({s, n});
    if (!fresh) return it->second;
    return it->second =
               add_communication(fmt::format("all-reduce of stage {}{}", s,
                                             shape_.endless() ? fmt::format(" #{}", n) : std::string{}),
                                 sum_patterns_.at(s), sum_bytes(s), input_.machine.collective_overhead_s);
  }

  CommId add_communication(std::string name, std::size_t pattern, double bytes, double overhead_s) {
    plan_.communications.push_back(
        {std::move(name), static_cast<std::uint32_t>(pattern), bytes, fidelity_, overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

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
    return it->second = add_communication(
               fmt::format("{} #{}, stage {} to {}", backward ? "gradients" : "activations", micro_batch,
                           from, to),
               pattern->second, shape_.images * (backward ? e.backward_bytes : e.forward_bytes), 0);
  }

  // Programs.

  void add_slot(std::uint32_t s, std::uint32_t k) {
    std::vector<std::int64_t> micro_batches;
    for (std::int64_t m = k; m < micro_batches_; m += choices_[s].slots) micro_batches.push_back(m);
    const std::size_t flying = static_cast<std::size_t>(in_flight(shape_, first_slot_[s], choices_[s].slots));
    const std::vector<Pass> passes =
        order_passes(micro_batches, flying, shape_.schedule == PipelineSchedule::gpipe && shape_.stages > 1);
    program_.clear();
    if (shape_.endless()) {
      add_endless(s, passes);
    } else {
      for (const Pass& pass : passes) add_pass(s, pass);
      add_update(s, 0, last_compute_);
    }
    add_roles(s, k);
  }

  /// Updates follow the backward pass that completes their gradients; double-buffered weights are not needed
  /// at once, so that their sum has until the next backward pass, which adds to the gradients again.
  void add_endless(std::uint32_t s, const std::vector<Pass>& passes) {
    const std::int64_t slots = choices_[s].slots, share = share_of_update(shape_, choices_[s].slots);
    const std::int64_t flying = in_flight(shape_, first_slot_[s], choices_[s].slots);
    const bool delayed = shape_.weights == Weights::double_buffered && shape_.stages > 1;
    std::int64_t forward = 0, backward = 0, updates = 0, due = 0;  // of this slot's, how many
    std::vector<std::int64_t> version;  // updates that its weights have seen, by micro-batch
    std::vector<double> missed;         // updates that they had not, by gradient
    TaskId completed = 0;
    const auto update = [&] {
      if (due == updates) return;
      add_update(s, updates, completed);
      // Micro-batches that were first to fill the pipeline met newer weights than later ones do.
      if (updates * share >= 2 * flying + share)
        for (std::int64_t i = updates * share; i < due * share; ++i)
          missed.push_back(static_cast<double>(updates - version[static_cast<std::size_t>(i)]));
      updates = due;
    };
    for (const Pass& pass : passes) {
      if (pass.backward || !delayed) update();
      add_pass(s, pass);
      ends_[pass.micro_batch] = last_compute_;
      if (pass.backward) {
        // The last updates, for which some slots have no micro-batch any more, are left out by all.
        if (++backward % share == 0 && backward * slots <= micro_batches_) {
          due = backward / share;
          completed = last_compute_;
        }
      } else {
        version.push_back(delayed ? std::max<std::int64_t>(0, forward / share - 1) : updates);
        ++forward;
      }
    }
    update();
    if (!missed.empty())
      plan_.stages[s].staleness = {
          std::accumulate(missed.begin(), missed.end(), 0.0) / static_cast<double>(missed.size()),
          *std::max_element(missed.begin(), missed.end())};
  }

  TaskId add_task(Task::Kind kind, std::string name, int stream, std::vector<TaskId> after, CommId comm) {
    Task task;
    task.kind = kind;
    task.name = std::move(name);
    task.stream = stream;
    task.after = std::move(after);
    task.comm = comm;
    program_.push_back(std::move(task));
    return static_cast<TaskId>(program_.size() - 1);
  }

  void add_message(Task::Kind kind, std::size_t edge, const Pass& pass, int stream, TaskId after) {
    const CommId comm = message(edge, pass.backward, pass.micro_batch);
    add_task(kind, plan_.communications[comm].name, stream, {after}, comm);
  }

  void add_pass(std::uint32_t s, const Pass& pass) {
    std::vector<TaskId> received;
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      if (!goes(e, s, pass.backward, false)) continue;
      const CommId comm = message(e, pass.backward, pass.micro_batch);
      received.push_back(add_task(Task::Kind::receive, plan_.communications[comm].name, receiving, {}, comm));
    }
    last_compute_ = add_task(Task::Kind::compute,
                             fmt::format("{} #{}", pass.backward ? "backward" : "forward", pass.micro_batch),
                             computing, std::move(received), 0);
    program_.back().ops = plan_ops(operations(s, pass), shape_.images,
                                   micro_batches_ > 1 ? fmt::format(" #{}", pass.micro_batch) : "");
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (goes(e, s, pass.backward, true))
        add_message(Task::Kind::send, e, pass, pass.backward ? sending_gradients : sending_activations,
                    last_compute_);
  }

  /// Whether an edge's message of a pass leaves (or reaches) a stage.
  bool goes(std::size_t edge, std::uint32_t s, bool backward, bool leaves) const {
    const StageEdge& e = edges_[edge];
    return (shape_.endless() || (backward ? e.backward_bytes : e.forward_bytes) > 0) &&
           s == (backward == leaves ? e.to : e.from);
  }

  const std::vector<StageOp>& operations(std::uint32_t s, const Pass& pass) const {
    const Stage& stage = stages_.stages[s];
    const bool again =
        !stage.backward.empty() &&
        (shape_.recompute == Recompute::always ||
         (shape_.recompute == Recompute::except_last && pass.micro_batch + 1 < shape_.micro_batches));
    if (pass.backward) return again ? stage.full_backward : stage.backward;
    return again ? stage.light_forward : stage.forward;
  }

  /// The stage's n-th update, whose gradients are complete after `completed`.
  void add_update(std::uint32_t s, std::int64_t n, TaskId completed) {
    std::vector<TaskId> before{completed};
    if (sum_patterns_.count(s) > 0) {
      const CommId comm = sum(s, n);
      before.push_back(
          add_task(Task::Kind::collective, plan_.communications[comm].name, summing, {completed}, comm));
    }
    const std::string suffix = shape_.endless() ? fmt::format(" #{}", n) : "";
    add_task(Task::Kind::compute, "update" + suffix, computing, std::move(before), 0);
    program_.back().ops = plan_ops(stages_.stages[s].update, 1, suffix);
  }

  /// One role for each type of device in the slot: what the system reserves differs.
  void add_roles(std::uint32_t s, std::uint32_t k) {
    std::map<std::uint32_t, std::vector<EndpointId>> by_type;
    for (const EndpointId e : slot(s, k)) by_type[input_.machine.devices[e].type].push_back(e);
    for (auto& [type, members] : by_type) {
      Role role;
      role.name = fmt::format("stage {}{} on {}", s,
                              choices_[s].slots > 1 ? fmt::format(" replica {}", k) : std::string{},
                              input_.machine.device_types[type].name);
      role.members = std::move(members);
      role.streams = stream_names;
      role.program = program_;
      role.resident_bytes = resident_bytes(stages_.stages[s].parameter_elements, input_.graph.options);
      role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] +=
          input_.machine.device_types[type].reserved_bytes;
      role.resident_bytes[static_cast<std::size_t>(MemoryClass::weights)] +=
          (plan_.stages[s].weight_versions - 1) * sum_bytes(s);
      plan_.roles.push_back(std::move(role));
      for (const auto& [micro_batch, task] : ends_)
        if ((micro_batch + 1) % shape_.micro_batches == 0)
          plan_.endless->steps[static_cast<std::size_t>(micro_batch / shape_.micro_batches)].push_back(
              {static_cast<std::uint32_t>(plan_.roles.size() - 1), task});
    }
    ends_.clear();
  }

  const StrategyInput& input_;
  const PipelineShape& shape_;
  const std::vector<StageChoice>& choices_;
  const Stages& stages_;
  AllReduceAlgorithm algorithm_;
  Fidelity fidelity_;
  std::vector<StageEdge> edges_;
  Stretch stretch_;
  std::int64_t micro_batches_;             ///< that are simulated
  std::vector<std::uint32_t> first_slot_;  ///< by stage
  Plan plan_;
  std::map<std::uint32_t, std::size_t> sum_patterns_;                       ///< by stage
  std::map<std::pair<std::uint32_t, std::int64_t>, CommId> sums_;           ///< stage, update
  std::map<std::tuple<std::size_t, bool, std::int64_t>, CommId> messages_;  ///< edge, backward, micro-batch
  std::map<std::tuple<std::size_t, bool, EndpointId, EndpointId>, std::size_t> patterns_;
  std::vector<Task> program_;  ///< of the slot under construction
  TaskId last_compute_ = 0;
  std::map<std::int64_t, TaskId> ends_;  ///< endless: by micro-batch of the slot, its backward pass
};

}  // namespace

Plan plan_pipeline(const StrategyInput& input, const PipelineShape& shape,
                   const std::vector<StageChoice>& choices, const Stages& stages,
                   AllReduceAlgorithm algorithm, Fidelity fidelity) {
  return Builder(input, shape, choices, stages, algorithm, fidelity).build();
}

}  // namespace convoy
