// SPDX-License-Identifier: MIT
#include "sim/plan/held_states.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

namespace convoy::inline plans {
namespace {

/// The values of these sets, one set after the other, from the first to before the last of them.
IndexSet stretch_of(const std::vector<IndexSet>& sets, std::int64_t first, std::int64_t end) {
  IndexSet found;
  std::int64_t at = 0;
  for (const IndexSet& set : sets)
    for (const IndexRange& range : set) {
      const std::int64_t size = range.end - range.begin;
      const std::int64_t from = std::clamp<std::int64_t>(first - at, 0, size);
      const std::int64_t to = std::clamp<std::int64_t>(end - at, 0, size);
      if (from < to) found.push_back({range.begin + from, range.begin + to});
      at += size;
    }
  return united(std::move(found));
}

class StateFinder {
 public:
  StateFinder(const Plan& plan, const TrainingGraph& graph, const ParameterElements& elements)
      : plan_(plan), meaning_(*plan.meaning), graph_(graph), elements_(elements) {
    for (const Communication& comm : plan.communications) {
      if (comm.meaning == no_meaning) continue;
      const std::uint32_t bucket = meaning_.communications[comm.meaning].bucket;
      if (bucket != no_meaning && meaning_.buckets[bucket].zero > 0)
        pattern_of_.emplace(bucket, comm.pattern);
    }
  }

  HeldStates find() {
    for (const Role& role : plan_.roles) add(role);
    for (const auto& [bucket, pattern] : pattern_of_)
      for (const std::vector<EndpointId>& group : plan_.patterns[pattern].groups)
        for (std::size_t i = 0; i < group.size(); ++i) share(meaning_.buckets[bucket], i, group);
    HeldStates held;
    for (const auto& [device, values] : kept_) {
      const auto shared = shared_.find(device);
      const KeptValues& of_device = shared != shared_.end() ? shared->second : *values;
      held.parameters.put(device, of_device.parameters);
      held.states.put(device, of_device.states);
    }
    return held;
  }

 private:
  /// Layers whose values a role's devices keep, with the parts that they have.
  using LayoutOf = std::map<std::size_t, std::set<std::uint32_t>>;

  LayoutOf layers_of(const Role& role) const {
    LayoutOf layers;
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops) {
        if (op.meaning == no_meaning) continue;
        const OpMeaning& means = meaning_.operations[op.meaning];
        if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
        const Operation& operation = graph_.operations[means.operation];
        const std::size_t owner = graph_.model.parameter_owner(operation.layer);
        const bool keeps = graph_.model.layers[owner].frozen
                               ? operation.phase == Phase::forward && operation.part == OperationPart::layer
                               : operation.phase == Phase::update;
        if (keeps) layers[owner].insert(means.layout);
      }
    return layers;
  }

  void add(const Role& role) {
    const LayoutOf layers = layers_of(role);
    if (layers.empty()) return;
    std::map<std::uint32_t, const KeptValues*> by_position;
    for (const EndpointId device : role.members) {
      const std::uint32_t position = meaning_.positions.empty() ? 0 : meaning_.positions[device];
      const auto [it, fresh] = by_position.try_emplace(position, nullptr);
      if (fresh) it->second = &all_.emplace_back(values_of(layers, position));
      kept_.emplace(device, it->second);
    }
  }

  KeptValues values_of(const LayoutOf& layers, std::uint32_t position) const {
    std::vector<IndexRange> found;
    for (const auto& [layer, layouts] : layers)
      for (const std::uint32_t layout : layouts) {
        const Region region = layout == no_meaning ? Region{} : meaning_.layouts[layout][position];
        for (const IndexRange& range : elements_.of_layer(layer, region.channels, region.inputs))
          found.push_back(range);
      }
    IndexSet all = united(std::move(found));
    IndexSet trained = difference(all, elements_.frozen());
    return {std::move(all), std::move(trained)};
  }

  /// Of a bucket, leaves a device of a group its share.
  void share(const BucketMeaning& bucket, std::size_t i, const std::vector<EndpointId>& group) {
    const EndpointId device = group[i];
    const auto kept = kept_.find(device);
    if (kept == kept_.end()) return;
    KeptValues& values = shared_.try_emplace(device, *kept->second).first->second;
    std::vector<IndexSet> tensors;
    std::vector<IndexRange> of_bucket;
    std::int64_t size = 0;
    for (const std::size_t p : bucket.parameters) {
      const Parameter& parameter = graph_.parameters[p];
      tensors.push_back(intersection(
          kept->second->states, elements_.of_tensor(parameter.layer, parameter.tensor, std::nullopt, {})));
      size += convoy::count(tensors.back());
      of_bucket.insert(of_bucket.end(), tensors.back().begin(), tensors.back().end());
    }
    const auto members = static_cast<std::int64_t>(group.size()), at = static_cast<std::int64_t>(i);
    const IndexSet all = united(std::move(of_bucket));
    const IndexSet own = stretch_of(tensors, at * size / members, (at + 1) * size / members);
    values.states = united(difference(values.states, all), own);
    if (bucket.zero >= 3) values.parameters = united(difference(values.parameters, all), own);
  }

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const ParameterElements& elements_;
  std::map<std::uint32_t, std::uint32_t> pattern_of_;  ///< of buckets that ZeRO shares out
  std::deque<KeptValues> all_;
  std::map<EndpointId, const KeptValues*> kept_;  ///< before ZeRO shares them out
  std::map<EndpointId, KeptValues> shared_;
};

}  // namespace

void SetByDevice::put(EndpointId device, const IndexSet& set) {
  const auto [it, fresh] = numbers_.try_emplace(set, sets_.size());
  if (fresh) sets_.push_back(&it->first);
  if (device >= of_.size()) of_.resize(device + 1, 0);
  of_[device] = it->second;
}

HeldStates held_states(const Plan& plan, const TrainingGraph& graph, const ParameterElements& elements) {
  return StateFinder(plan, graph, elements).find();
}

}  // namespace convoy::plans
