// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/lowering/plan_ops.h"
#include "strategies/hybrid/hybrid_work.h"
#include "strategies/replicas.h"

namespace convoy {
namespace {

constexpr std::uint32_t none = HybridSchedule::none;
enum Stream : int { computing, summing, exchanging };

class Builder {
 public:
  Builder(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
          const HybridSchedule& schedule, const HybridCommunication& communication)
      : input_(input),
        graph_(input.graph),
        spreads_(spreads),
        schedule_(schedule),
        how_(communication),
        devices_(input.machine.devices.size() / replicas) {
    for (std::size_t r = 0; r < replicas; ++r) {
      groups_.emplace_back();
      for (std::size_t d = 0; d < devices_; ++d)
        groups_.back().push_back(static_cast<EndpointId>(r * devices_ + d));
    }
  }

  Plan build() {
    plan_.images = schedule_.parts.front().total() * static_cast<double>(groups_.size());
    messages_ = add_messages(plan_, input_, groups_, spreads_, schedule_, how_);
    for (const auto& [key, members] : alike()) plan_.roles.push_back(role(key.first, members));
    return std::move(plan_);
  }

 private:
  // Roles: devices of one type whose shares are the same everywhere.

  using Key = std::pair<std::size_t, std::uint32_t>;  ///< first device of a group that is like it, type

  std::map<Key, std::vector<EndpointId>> alike() const {
    std::map<std::vector<std::int64_t>, std::size_t> first;
    std::vector<std::size_t> like(devices_);
    const std::vector<const std::vector<std::int64_t>*> counts = all_counts();
    for (std::size_t d = 0; d < devices_; ++d) {
      std::vector<std::int64_t> shares;
      for (const std::vector<std::int64_t>* each : counts) shares.push_back((*each)[d]);
      for (const HybridMessages::Sum& sum : messages_.sums) shares.push_back(sum.comms[d]);
      like[d] = first.emplace(std::move(shares), d).first->second;
    }
    std::map<Key, std::vector<EndpointId>> roles;
    for (std::size_t d = 0; d < devices_; ++d)
      for (const std::vector<EndpointId>& group : groups_)
        roles[{like[d], input_.machine.devices[group[d]].type}].push_back(group[d]);
    for (auto& [key, members] : roles) std::sort(members.begin(), members.end());
    return roles;
  }

  /// Everything by which devices may differ, each once.
  std::vector<const std::vector<std::int64_t>*> all_counts() const {
    std::vector<const std::vector<std::int64_t>*> counts;
    std::set<const void*> known;
    const auto add = [&](const std::vector<std::int64_t>& each) {
      if (known.insert(&each).second) counts.push_back(&each);
    };
    const auto add_spread = [&](const Spread& spread) {
      if (spread.cut) add(spread.cut->counts);
    };
    for (const LayerSpread& spread : spreads_) {
      add_spread(spread.output);
      for (const InputSpread& in : spread.inputs) {
        add_spread(in.needed);
        if (in.halo) add(in.halo->counts);
      }
    }
    for (const ImagePart& part : schedule_.parts) {
      add(part.images.counts);
      add(part.loss.counts);
    }
    return counts;
  }

  Role role(std::size_t device, const std::vector<EndpointId>& members) {
    const Device& first = input_.machine.devices[members.front()];
    double parameters = 0;
    for (std::size_t i = 0; i < spreads_.size(); ++i)
      parameters += parameters_on(graph_.model.layers[i], spreads_[i], device);
    Role role = replica_role(input_, {first.type, 0, members}, resident_bytes(parameters, graph_.options));
    role.name = fmt::format("like {}", first.name);
    role.streams = {"compute", "all-reduce of gradients", "exchange"};
    add_program(role, device);
    return role;
  }

  /// What happens to memory at each time (HybridSchedule::Copy).
  struct MemoryTimes {
    std::map<std::uint32_t, std::vector<MemoryDelta>> allocates, frees;
  };
  static void add(std::vector<MemoryDelta>& deltas, MemoryClass memory_class, double bytes) {
    for (MemoryDelta& delta : deltas)
      if (delta.memory_class == memory_class) {
        delta.bytes += bytes;
        return;
      }
    deltas.push_back({memory_class, bytes});
  }
  MemoryTimes memory(std::size_t device) const {
    MemoryTimes times;
    for (const HybridSchedule::Copy& copy : schedule_.copies) {
      const double bytes = schedule_.bytes(copy, device);
      if (copy.first == none || bytes == 0) continue;
      add(times.allocates[copy.first], copy.memory_class, bytes);
      add(times.frees[copy.last], copy.memory_class, bytes);
    }
    return times;
  }
  static std::vector<MemoryDelta> at(const std::map<std::uint32_t, std::vector<MemoryDelta>>& times,
                                     std::uint32_t time) {
    const auto it = times.find(time);
    return it == times.end() ? std::vector<MemoryDelta>{} : it->second;
  }

  void add_program(Role& role, std::size_t device) const {
    const MemoryTimes memory = this->memory(device);
    std::vector<std::vector<std::uint32_t>> starts(schedule_.steps.size());
    for (std::uint32_t e = 0; e < schedule_.exchanges.size(); ++e)
      if (messages_.of_exchange[e] != none) starts[schedule_.exchanges[e].after].push_back(e);
    std::vector<TaskId> task_of(schedule_.exchanges.size(), 0);
    std::vector<TaskId> after;
    std::vector<PlanOp> ops;
    std::optional<TaskId> last;
    const auto close = [&] {
      if (ops.empty()) return;
      std::string name = fmt::format("compute up to {}", ops.back().name);
      last = add_compute(role, std::move(name), std::move(ops), std::move(after));
      ops.clear();
      after.clear();
    };
    const auto collective = [&](const std::string& name, Stream stream, CommId comm,
                                std::vector<TaskId> before) {
      const TaskId task = add_message(role, Task::Kind::collective, name, comm, std::move(before));
      role.program.back().stream = stream;
      return task;
    };
    std::vector<TaskId> before_update;
    std::size_t next_sum = 0;
    for (std::uint32_t s = 0; s < schedule_.steps.size(); ++s) {
      const HybridSchedule::Step& step = schedule_.steps[s];
      for (const std::uint32_t e : step.waits)
        if (messages_.of_exchange[e] != none) {
          close();
          after.push_back(task_of[e]);
        }
      ops.push_back(operation(step, device));
      ops.back().allocates = at(memory.allocates, 2 * s);
      ops.back().frees = at(memory.frees, 2 * s);
      std::vector<MemoryDelta> buffers = at(memory.allocates, 2 * s + 1);
      if (!buffers.empty()) ops.push_back(memory_op("buffers of " + ops.back().name, std::move(buffers), {}));
      for (const std::uint32_t e : starts[s]) {
        close();
        std::vector<TaskId> before{*last};
        for (const std::uint32_t earlier : schedule_.exchanges[e].after_exchanges)
          if (messages_.of_exchange[earlier] != none) before.push_back(task_of[earlier]);
        task_of[e] = collective(plan_.communications[messages_.of_exchange[e]].name, exchanging,
                                messages_.of_exchange[e], before);
      }
      for (; how_.overlap && next_sum < messages_.sums.size() && messages_.sums[next_sum].ready == s;
           ++next_sum) {
        if (messages_.sums[next_sum].comms[device] == none) continue;
        close();
        before_update.push_back(collective(messages_.sums[next_sum].name, summing,
                                           messages_.sums[next_sum].comms[device], {*last}));
      }
    }
    close();
    if (last) before_update.insert(before_update.begin(), *last);
    for (; next_sum < messages_.sums.size(); ++next_sum)
      if (messages_.sums[next_sum].comms[device] != none)
        before_update.push_back(collective(messages_.sums[next_sum].name, summing,
                                           messages_.sums[next_sum].comms[device], {*last}));
    add_compute(role, "update", updates(device), std::move(before_update));
  }

  PlanOp operation(const HybridSchedule::Step& step, std::size_t device) const {
    ShareOfWork share = share_of(graph_, spreads_, schedule_, step, device);
    const std::string& name = graph_.operations[step.op].name;
    return {
        step.part == 0 ? name : fmt::format("{} #{}", name, step.part - 1), share.work, share.images, {}, {}};
  }

  std::vector<PlanOp> updates(std::size_t device) const {
    std::vector<PlanOp> ops;
    for (OpId id = 0; id < graph_.operations.size(); ++id)
      if (graph_.operations[id].phase == Phase::update)
        ops.push_back({graph_.operations[id].name, share_of_update(graph_, spreads_, id, device), 1, {}, {}});
    return ops;
  }

  const StrategyInput& input_;
  const TrainingGraph& graph_;
  const std::vector<LayerSpread>& spreads_;
  const HybridSchedule& schedule_;
  const HybridCommunication& how_;
  std::size_t devices_;                          ///< of a group
  std::vector<std::vector<EndpointId>> groups_;  ///< by replica
  Plan plan_;
  HybridMessages messages_;
};

}  // namespace

Plan plan_hybrid(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
                 const HybridSchedule& schedule, const HybridCommunication& communication) {
  return Builder(input, replicas, spreads, schedule, communication).build();
}

}  // namespace convoy
