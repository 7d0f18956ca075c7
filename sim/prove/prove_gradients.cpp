// SPDX-License-Identifier: MIT
#include "sim/prove/prove_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/prove/gradient_prover.h"
#include "sim/prove/image_cover.h"
#include "sim/prove/prove_parts.h"

namespace convoy::inline prove {
namespace gradients {

GradientProver::GradientProver(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                               const Machine& machine, const HappensBefore& order, RoundRules& rounds,
                               ParameterParts* parts)
    : plan_(plan),
      meaning_(*plan.meaning),
      graph_(graph),
      machine_(machine),
      order_(order),
      rounds_(rounds),
      parts_(parts),
      gossip_(report.gossip) {
  for (const Layer& layer : graph.model.layers) has_parameters_.push_back(layer.trains());
  completes_.assign(graph.operations.size(), false);
  for (const Parameter& parameter : graph.parameters) completes_[parameter.gradient] = true;
  std::vector<std::size_t> versions(machine.endpoint_count(), 1);
  for (const PipelineStage& stage : report.stages)
    for (const EndpointId e : stage.devices) versions[e] = stage.weight_versions;
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
    uses_.push_back(find_uses(r));
    versions_.push_back(versions[plan.roles[r].members.front()]);
  }
}

void GradientProver::prove() {
  std::map<std::uint32_t, std::vector<std::uint32_t>> replicas;  // by layer
  for (std::uint32_t r = 0; r < uses_.size(); ++r) {
    for (const auto& [layer, events] : uses_[r].updates) replicas[layer].push_back(r);
    // Where work is placed, parameters come from who updates them, and gradients go there.
    if (is_placed(meaning_)) continue;
    for (const auto* all : {&uses_[r].reads, &uses_[r].gradients})
      for (const auto& [layer, events] : *all)
        if (!uses_[r].updates.contains(layer))
          throw Refuted(fmt::format("{}: {} is never updated", name_of(plan_.roles[r], machine_),
                                    graph_.model.layers[layer].name));
  }
  for (const Parameter& parameter : graph_.parameters)
    if (!replicas.contains(parameter.layer)) throw Refuted(fmt::format("nobody updates {}", parameter.name));
  for (const auto& [layer, roles] : replicas) {
    for (const std::uint32_t r : roles) check_updates(r, layer, uses_[roles.front()].updates[layer].size());
    if (!parts_) check_images(layer, roles);
  }
  for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
    const std::vector<std::uint32_t>& roles = replicas[graph_.parameters[p].layer];
    parts_ ? check_parts(p, roles) : check_replicas(p, roles);
  }
  for (std::uint32_t r = 0; r < uses_.size(); ++r)
    for (const auto& [bucket, use] : uses_[r].buckets) check_bucket(r, bucket, use);
}

std::string GradientProver::comm_name(std::uint32_t r, TaskId t) const {
  return plan_.communications[plan_.roles[r].program[t].comm].name;
}

void GradientProver::check_images(std::uint32_t layer, const std::vector<std::uint32_t>& roles) {
  const std::size_t updates = uses_[roles.front()].updates[layer].size();
  std::vector<double> signature{static_cast<double>(updates)};
  for (const std::uint32_t r : roles) {
    signature.push_back(r);
    for (const Event& event : uses_[r].gradients[layer])
      signature.insert(signature.end(), {event.images.first, event.images.count,
                                         static_cast<double>(update_of(r, layer, event))});
  }
  if (!known_images_.insert(std::move(signature)).second) return;
  std::vector<std::vector<std::pair<double, double>>> parts(updates);  // by update: first image, count
  for (const std::uint32_t r : roles)
    for (const Event& event : uses_[r].gradients[layer]) {
      const std::size_t update = update_of(r, layer, event);
      for (const EndpointId e : plan_.roles[r].members)
        if (event.images.count > 0 && update < updates)
          parts[update].emplace_back(event.images.first + meaning_.lanes[e] * event.images.count,
                                     event.images.count);
    }
  const std::string name = graph_.model.layers[layer].name;
  const double tolerance = 1e-9 * (1 + plan_.images);
  double end = 0;
  std::vector<double> ends;  // by update
  for (std::vector<std::pair<double, double>>& of_update : parts)
    ends.push_back(end = end_of_images(of_update, end, tolerance, name));
  if (const auto [it, fresh] = ends_.try_emplace(roles, ends); !fresh && it->second != ends)
    throw Refuted(
        fmt::format("{}: updates of {} have the gradients of other images than those of other layers",
                    name_of(plan_.roles[roles.front()], machine_), name));
  if (!plan_.endless() && std::abs(end - plan_.images * plan_.steps) > tolerance)
    throw Refuted(fmt::format("the gradients of {} are of {} images, and the batch has {}", name, end,
                              plan_.images * plan_.steps));
}

void GradientProver::check_updates(std::uint32_t r, std::uint32_t layer, std::size_t updates_of_others) {
  const std::vector<Event>& updates = uses_[r].updates[layer];
  const std::string& name = graph_.model.layers[layer].name;
  if (updates.size() != updates_of_others)
    throw Refuted(fmt::format("{}: {} is updated {} times, and elsewhere {} times", at(r, updates[0].task),
                              name, updates.size(), updates_of_others));
  if (!plan_.endless() && static_cast<double>(updates.size()) != plan_.steps)
    throw Refuted(
        fmt::format("{}: {} is updated {} times", at(r, updates.back().task), name, updates.size()));
  std::map<std::int64_t, std::size_t> oldest;  // by micro-batch: updates before the first to read
  std::vector<const Event*> all;
  for (const auto* events : {&uses_[r].reads[layer], &uses_[r].gradients[layer]})
    for (const Event& event : *events) all.push_back(&event);
  std::sort(all.begin(), all.end(), [](const Event* a, const Event* b) { return a->number < b->number; });
  const std::vector<std::size_t> versions = version_numbers(r, layer);
  for (const Event* event : all) {
    const auto update = static_cast<std::size_t>(
        std::upper_bound(versions.begin(), versions.end(), event->number) - versions.begin());
    if (!plan_.endless() && plan_.steps == 1 && update > 0 && update > averages_before(r, layer, *event))
      throw Refuted(fmt::format("{}: {} comes after the update of {}, of whose old version it is",
                                at(r, event->task), graph_.operations[event->operation].name, name));
    const std::size_t missed = update - oldest.try_emplace(event->micro_batch, update).first->second;
    if (missed >= versions_[r])
      throw Refuted(fmt::format(
          "{}: {} comes {} after the version that its micro-batch began with; {} kept", at(r, event->task),
          graph_.operations[event->operation].name, count_of(missed, "update"),
          versions_[r] == 1 ? "only the newest is" : fmt::format("{} are", versions_[r])));
  }
}

}  // namespace gradients

void prove_gradients(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                     const Machine& machine, const HappensBefore& order, RoundRules& rounds,
                     ParameterParts* parts) {
  gradients::GradientProver(plan, report, graph, machine, order, rounds, parts).prove();
}

}  // namespace convoy::prove
