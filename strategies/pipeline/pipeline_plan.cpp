// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_plan.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "strategies/jitter.h"

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

class Builder {
 public:
  Builder(const StrategyInput& input, const PipelineShape& shape, const std::vector<StageChoice>& choices,
          const Stages& stages, AllReduceAlgorithm algorithm)
      : input_(input), shape_(shape), choices_(choices), stages_(stages), algorithm_(algorithm) {
    std::uint32_t before = 0;
    for (const StageChoice& choice : choices) {
      first_slot_.push_back(before);
      before += choice.slots;
    }
  }

  Plan build() {
    plan_.images = shape_.images * static_cast<double>(shape_.micro_batches) *
                   static_cast<double>(shape_.slots.front().size());
    add_sums();
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      for (std::uint32_t k = 0; k < choices_[s].slots; ++k) add_slot(s, k);
      plan_.stages.push_back({devices_of(s), stages_.stages[s].layers});
    }
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

  // Communications. Those of one micro-batch have one for each edge between stages and direction.

  void add_sums() {
    for (std::uint32_t s = 0; s < choices_.size(); ++s) {
      const std::vector<EndpointId> ranks = devices_of(s);
      const double bytes =
          stages_.stages[s].parameter_elements * element_bytes(input_.graph.options.precision);
      if (ranks.size() < 2 || bytes == 0) continue;
      plan_.patterns.push_back(all_reduce_pattern(algorithm_, ranks, input_.machine, bytes));
      sums_.emplace(s, add_communication(fmt::format("all-reduce of stage {}", s), plan_.patterns.size() - 1,
                                         bytes, input_.machine.collective_overhead_s));
    }
  }

  CommId add_communication(std::string name, std::size_t pattern, double bytes, double overhead_s) {
    plan_.communications.push_back(
        {std::move(name), static_cast<std::uint32_t>(pattern), bytes, Fidelity::automatic, overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  CommId message(std::size_t edge, bool backward, std::int64_t micro_batch) {
    const auto [it, fresh] = messages_.try_emplace({edge, backward, micro_batch});
    if (!fresh) return it->second;
    const StageEdge& e = stages_.edges[edge];
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
    for (std::int64_t m = k; m < shape_.micro_batches; m += choices_[s].slots) micro_batches.push_back(m);
    const std::size_t flying = static_cast<std::size_t>(in_flight(shape_, first_slot_[s], choices_[s].slots));
    program_.clear();
    for (const Pass& pass :
         order_passes(micro_batches, flying, shape_.schedule == PipelineSchedule::gpipe && shape_.stages > 1))
      add_pass(s, pass);
    add_update(s);
    add_roles(s, k);
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
    for (std::size_t e = 0; e < stages_.edges.size(); ++e) {
      if (!goes(e, s, pass.backward, false)) continue;
      const CommId comm = message(e, pass.backward, pass.micro_batch);
      received.push_back(add_task(Task::Kind::receive, plan_.communications[comm].name, receiving, {}, comm));
    }
    last_compute_ = add_task(Task::Kind::compute,
                             fmt::format("{} #{}", pass.backward ? "backward" : "forward", pass.micro_batch),
                             computing, std::move(received), 0);
    program_.back().ops = plan_ops(operations(s, pass), shape_.images,
                                   shape_.micro_batches > 1 ? fmt::format(" #{}", pass.micro_batch) : "");
    for (std::size_t e = 0; e < stages_.edges.size(); ++e)
      if (goes(e, s, pass.backward, true))
        add_message(Task::Kind::send, e, pass, pass.backward ? sending_gradients : sending_activations,
                    last_compute_);
  }

  /// Whether an edge's message of a pass leaves (or reaches) a stage.
  bool goes(std::size_t edge, std::uint32_t s, bool backward, bool leaves) const {
    const StageEdge& e = stages_.edges[edge];
    return (backward ? e.backward_bytes : e.forward_bytes) > 0 && s == (backward == leaves ? e.to : e.from);
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

  void add_update(std::uint32_t s) {
    std::vector<TaskId> before{last_compute_};
    if (const auto sum = sums_.find(s); sum != sums_.end())
      before.push_back(add_task(Task::Kind::collective, plan_.communications[sum->second].name, summing,
                                {last_compute_}, sum->second));
    add_task(Task::Kind::compute, "update", computing, std::move(before), 0);
    program_.back().ops = plan_ops(stages_.stages[s].update, 1, "");
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
      role.slowdown =
          synchronous_slowdown(input_.machine.step_jitter, shape_.slots.size() * shape_.slots.front().size());
      plan_.roles.push_back(std::move(role));
    }
  }

  const StrategyInput& input_;
  const PipelineShape& shape_;
  const std::vector<StageChoice>& choices_;
  const Stages& stages_;
  AllReduceAlgorithm algorithm_;
  std::vector<std::uint32_t> first_slot_;  ///< by stage
  Plan plan_;
  std::map<std::uint32_t, CommId> sums_;                                    ///< by stage
  std::map<std::tuple<std::size_t, bool, std::int64_t>, CommId> messages_;  ///< edge, backward, micro-batch
  std::map<std::tuple<std::size_t, bool, EndpointId, EndpointId>, std::size_t> patterns_;
  std::vector<Task> program_;  ///< of the slot under construction
  TaskId last_compute_ = 0;
};

}  // namespace

Plan plan_pipeline(const StrategyInput& input, const PipelineShape& shape,
                   const std::vector<StageChoice>& choices, const Stages& stages,
                   AllReduceAlgorithm algorithm) {
  return Builder(input, shape, choices, stages, algorithm).build();
}

}  // namespace convoy
