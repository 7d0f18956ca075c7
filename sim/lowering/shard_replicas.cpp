// SPDX-License-Identifier: MIT
#include "sim/lowering/shard_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace convoy::inline lowering {

ShardReplicas::ShardReplicas(Plan& plan, const TrainingGraph& graph, const Machine& machine,
                             const DeviceGroups& groups, const std::vector<std::uint32_t>& stages,
                             const std::vector<LayerSharding>& shardings, const GradientSync& sync)
    : plan_(plan),
      graph_(graph),
      machine_(machine),
      groups_(groups),
      stages_(stages),
      shardings_(shardings),
      sync_(sync),
      devices_(groups.front().front().size()),
      tensors_(graph.parameters.size(), nullptr),
      of_(groups.size(), std::vector<std::vector<GroupSync*>>(devices_)) {
  for (std::size_t p = 0; p < tensors_.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    tensors_[p] = &graph.model.layers[parameter.layer].parameters[parameter.tensor];
  }
  for (std::uint32_t stage = 0; stage < groups.size(); ++stage) add(stage);
}

void ShardReplicas::add(std::uint32_t stage) {
  const std::string of = groups_.size() > 1 ? fmt::format(" of stage {}", stage) : "";
  const std::size_t count = graph_.parameters.size();
  Replicated everyones{{{}}, std::vector<double>(count, 0.0)};
  for (const std::vector<EndpointId>& group : groups_[stage])
    everyones.groups[0].insert(everyones.groups[0].end(), group.begin(), group.end());
  std::vector<std::size_t> shared;  // parameters of which devices have shares, or each group its own
  for (std::size_t p = 0; p < count; ++p) {
    const std::uint32_t layer = graph_.parameters[p].layer;
    if (stages_[layer] != stage) continue;
    if (is_everyones(layer))
      everyones.elements[p] = elements_on(p, 0);
    else
      shared.push_back(p);
  }
  GroupSync& of_all = add(std::move(everyones), of);
  for (std::vector<GroupSync*>& groups : of_[stage]) groups = {&of_all};
  if (!shared.empty()) add_shares(stage, shared, " over replicas" + of);
}

void ShardReplicas::add_shares(std::uint32_t stage, const std::vector<std::size_t>& shared,
                               const std::string& of) {
  std::map<std::vector<double>, std::vector<std::size_t>> by_share;  // positions with equal shares
  std::vector<double> first;                                         // shares of the first position
  for (std::size_t d = 0; d < devices_; ++d) {
    std::vector<double> share(graph_.parameters.size(), 0.0);
    for (const std::size_t p : shared) share[p] = elements_on(p, d);
    if (d == 0) first = share;
    by_share[std::move(share)].push_back(d);
  }
  for (const auto& [share, positions] : by_share) {
    Replicated parameters{{}, share, first};
    for (const std::size_t d : positions) {
      std::vector<EndpointId>& replicas = parameters.groups.emplace_back();
      for (const std::vector<EndpointId>& group : groups_[stage]) replicas.push_back(group[d]);
    }
    GroupSync& of_share = add(std::move(parameters), of);
    for (const std::size_t d : positions) of_[stage][d].push_back(&of_share);
  }
}

GroupSync& ShardReplicas::add(Replicated parameters, const std::string& of) {
  return all_.emplace_back(sync_, graph_, machine_, std::move(parameters), of, plan_);
}

bool ShardReplicas::is_everyones(std::size_t layer) const {
  return devices_ == 1 || shardings_[layer].sums_gradients();
}

double ShardReplicas::elements_on(std::size_t parameter, std::size_t device) const {
  const Parameter& p = graph_.parameters[parameter];
  const Layer& layer = graph_.model.layers[p.layer];
  return tensors_[parameter] ? parameters_on(layer, shardings_[p.layer], *tensors_[parameter], device) : 0;
}

double ShardReplicas::sent_bytes(CommId comm) const {
  const Communication& c = plan_.communications[comm];
  const Pattern& pattern = plan_.patterns[c.pattern];
  double fractions = 0;
  for (const Round& round : pattern.rounds)
    round.for_each_message([&](auto, auto, double fraction) { fractions += fraction * round.repeat; });
  return c.bytes * fractions * static_cast<double>(pattern.groups.size());
}

std::vector<LayerGroup> ShardReplicas::describe(const GraphSchedule& schedule,
                                                const ExchangeComms& exchanges) const {
  std::vector<double> exchanged(shardings_.size(), 0.0), summed = exchanged;
  for (const std::vector<CommId>& of_micro_batch : exchanges)
    for (std::size_t e = 0; e < of_micro_batch.size(); ++e)
      if (of_micro_batch[e] != GraphSchedule::none)
        exchanged[schedule.exchanges[e].layer] += sent_bytes(of_micro_batch[e]);
  for (const GroupSync& group : all_)
    for (const GroupSync::Sent& sent : group.sent()) {
      const Bucket& bucket = group.buckets()[sent.bucket];
      const double per_element =
          sent_bytes(sent.comm) * element_bytes(graph_.options.precision) / bucket.bytes;
      for (const std::size_t p : bucket.parameters)
        summed[graph_.parameters[p].layer] += per_element * group.parameters().elements[p];
    }
  std::vector<LayerGroup> layouts;
  for (std::size_t i = 0; i < shardings_.size(); ++i) {
    const std::string& layout = shardings_[i].layout;
    if (layouts.empty() || layouts.back().layout != layout) layouts.push_back({layout, {}});
    LayerGroup& group = layouts.back();
    group.layers.push_back(graph_.model.layers[i].name);
    double most = 0;
    for (std::size_t d = 0; d < devices_; ++d)
      most = std::max(most, parameters_on(graph_.model.layers[i], shardings_[i], d));
    group.parameter_bytes += most * element_bytes(graph_.options.precision);
    group.exchange_bytes += exchanged[i];
    group.gradient_bytes += summed[i];
  }
  return layouts;
}

}  // namespace convoy::lowering
