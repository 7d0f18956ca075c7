// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

void PartsProver::find_lanes() {
  const std::size_t count = machine_.endpoint_count();
  followed_as_.resize(count);
  for (EndpointId e = 0; e < count; ++e) followed_as_[e] = e;
  if (lane_count_ > 1) {
    // Replicas whose devices have the same programs, position by position: the first stands for the others.
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> programs(lane_count_);
    std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, EndpointId>> devices(lane_count_);
    for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
      for (const EndpointId e : plan_.roles[r].members) {
        programs[meaning_.lanes[e]].emplace_back(r, meaning_.positions[e]);
        devices[meaning_.lanes[e]][{r, meaning_.positions[e]}] = e;
      }
    std::map<std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> first;
    for (std::uint32_t lane = 0; lane < lane_count_; ++lane) {
      std::sort(programs[lane].begin(), programs[lane].end());
      const std::uint32_t like = first.try_emplace(programs[lane], lane).first->second;
      for (const auto& [as, e] : devices[lane]) followed_as_[e] = devices[like].at(as);
    }
    if (!groups_are_alike())
      for (EndpointId e = 0; e < count; ++e) followed_as_[e] = e;
  }
  followed_.resize(plan_.roles.size());
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : plan_.roles[r].members)
      if (is_followed(e)) followed_[r].push_back(e);
}

bool PartsProver::groups_are_alike() const {
  std::set<std::uint32_t> patterns;
  for (const Communication& of : plan_.communications)
    if (of.meaning != no_meaning)
      if (const Kind kind = meaning_.communications[of.meaning].kind;
          kind == Kind::results || kind == Kind::parts)
        patterns.insert(of.pattern);
  std::map<std::uint32_t, std::uint32_t> lanes;  // which stands for which
  for (const Role& role : plan_.roles)
    for (const EndpointId e : role.members) lanes[meaning_.lanes[e]] = meaning_.lanes[followed_as_[e]];
  for (const std::uint32_t pattern : patterns) {
    using Groups = std::vector<std::vector<EndpointId>>;  // by those that stand for the members
    std::map<std::uint32_t, Groups> of_lane;
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern].groups) {
      std::vector<EndpointId>& as = of_lane[meaning_.lanes[group.front()]].emplace_back();
      for (const EndpointId e : group) {
        if (meaning_.lanes[e] != meaning_.lanes[group.front()])
          throw Refuted(fmt::format("{} sends {} results of other images than it has",
                                    machine_.endpoint_name(group.front()), machine_.endpoint_name(e)));
        as.push_back(followed_as_[e]);
      }
    }
    for (auto& [lane, groups] : of_lane) std::sort(groups.begin(), groups.end());
    for (const auto& [lane, like] : lanes) {
      const auto own = of_lane.find(lane), other = of_lane.find(like);
      if ((own == of_lane.end()) != (other == of_lane.end())) return false;
      if (own != of_lane.end() && own->second != other->second) return false;
    }
  }
  return true;
}

const std::vector<const std::vector<EndpointId>*>& PartsProver::followed_groups(std::uint32_t pattern) const {
  const auto [it, fresh] = groups_.try_emplace(pattern);
  if (fresh)
    for (const std::vector<EndpointId>& group : plan_.patterns[pattern].groups)
      if (is_followed(group.front())) it->second.push_back(&group);
  return it->second;
}

std::vector<std::uint32_t> PartsProver::uses_of(std::uint32_t layer) const {
  std::vector<std::uint32_t> uses;
  for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i)
    if (graph_.model.parameter_owner(i) == layer) uses.push_back(i);
  return uses;
}

double PartsProver::elements(std::size_t parameter, EndpointId e) const {
  const Parameter& of = graph_.parameters[parameter];
  const auto all = static_cast<double>(of.elements);
  const auto& updates = devices_[followed_as_[e]].updates;
  const auto update = updates.find(of.layer);
  if (update == updates.end()) return all;
  const Box work = maps_.work(of.layer);
  Box part = parameter_part(of.layer, update->second.second);
  // Of sums over inputs, what is added to the sum is everyone's.
  if (of.tensor > 0) part[Box::inputs] = work[Box::inputs];
  return all * part.volume() / work.volume();
}

void PartsProver::check_share(const Device& device, TaskId t, const PlanOp& op, const Operation& operation,
                              double share) const {
  const Work& whole = operation.work;
  double wanted = 0;
  bool may_be_less = false;
  bool is_right = op.operation == PlanOp::of_plan || &graph_.operations[op.operation] == &operation;
  if (operation.phase == Phase::update) {
    double own = 0, all = 0;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      if (graph_.parameters[p].layer == operation.layer) {
        own += elements(p, device.endpoint);
        all += static_cast<double>(graph_.parameters[p].elements);
        for (const BucketMeaning& bucket : meaning_.buckets)
          may_be_less =
              may_be_less || (bucket.zero > 0 && std::find(bucket.parameters.begin(), bucket.parameters.end(),
                                                           p) != bucket.parameters.end());
      }
    wanted = all > 0 ? own / all * (whole.flops_per_image + whole.flops_fixed) : 0;
    is_right = is_right && op.work.phase == whole.phase && op.images == 1;
  } else {
    const Box work =
        in_layout(meaning_.operations[op.meaning].layout, device.endpoint, maps_.work(operation.layer));
    const auto images = static_cast<double>(maps_.images());
    if (share > 0) {
      wanted = share * whole.flops_per_image * images + whole.flops_fixed;
      const double own = static_cast<double>(count(work[Box::images]));
      is_right = is_right && op.work.kind == whole.kind && op.work.phase == whole.phase &&
                 std::abs(op.images - own) < 1e-9 * own;
    }
  }
  const double does = share > 0 ? op.work.flops_per_image * op.images + op.work.flops_fixed
                                : op.work.flops_per_image * op.images;
  const double tolerance = 1e-9 * (1 + wanted);
  if (!is_right || does > wanted + tolerance || (does < wanted - tolerance && !may_be_less))
    throw Refuted(
        fmt::format("{}: {} does other work than this part of {}", at(device, t), op.name, operation.name));
}

std::set<std::vector<EndpointId>> PartsProver::followed_sets(const std::vector<EndpointId>& group) const {
  std::map<std::uint32_t, std::vector<EndpointId>> of_lane;
  for (const EndpointId e : group) of_lane[meaning_.lanes[e]].push_back(followed_as_[e]);
  if (of_lane.size() != lane_count_)
    throw Refuted(fmt::format("{}: it sums gradients with {} of {} replicas",
                              machine_.endpoint_name(group.front()), of_lane.size(), lane_count_));
  std::set<std::vector<EndpointId>> sets;
  for (auto& [lane, devices] : of_lane) {
    std::sort(devices.begin(), devices.end());
    sets.insert(std::move(devices));
  }
  return sets;
}

void PartsProver::check_sum(const std::vector<std::size_t>& parameters,
                            const std::vector<EndpointId>& group) {
  std::set<std::uint32_t> layers;
  for (const std::size_t p : parameters) layers.insert(graph_.parameters[p].layer);
  std::map<std::uint32_t, std::pair<EndpointId, Box>> parts;  // by layer: the first device's
  for (const std::vector<EndpointId>& devices : followed_sets(group))
    for (const std::uint32_t layer : layers) {
      for (const EndpointId e : devices) {
        const auto update = devices_[e].updates.find(layer);
        if (update == devices_[e].updates.end())
          throw Refuted(fmt::format("{}: {} is never updated", machine_.endpoint_name(e),
                                    graph_.model.layers[layer].name));
        const Box own = parameter_part(layer, update->second.second);
        if (const auto& [first, part] = parts.try_emplace(layer, e, own).first->second; part != own)
          throw Refuted(fmt::format("{} and {} sum their gradients of {}, of which they have other parts",
                                    machine_.endpoint_name(first), machine_.endpoint_name(e),
                                    graph_.model.layers[layer].name));
      }
      const Box& part = parts.at(layer).second;
      if (part.empty() || !known_sums_.insert({layer, devices}).second) continue;
      for (const std::uint32_t use : uses_of(layer)) {
        if (!weight_gradient_[use])
          throw NotCovered(fmt::format("no operation of its own makes the gradient of the parameters of {}",
                                       graph_.model.layers[use].name));
        for (std::int64_t m = 0; m < micro_batches_; ++m) {
          Terms terms;
          for (const EndpointId e : devices) {
            const auto& own = devices_[e].parameter_gradients;
            if (const auto found = own.find(use); found != own.end())
              for (const Value& value : found->second)
                if (value.micro_batch == m) terms.insert(terms.end(), value.terms.begin(), value.terms.end());
          }
          if (const std::optional<std::string> error =
                  cover_error(terms, {*weight_gradient_[use], 0}, parameter_part(use, part)))
            throw Refuted(fmt::format("{}: of the gradient of {} of micro-batch {}, a part {}",
                                      machine_.endpoint_name(devices.front()), graph_.model.layers[use].name,
                                      m, *error));
        }
      }
    }
}

}  // namespace parts
}  // namespace convoy::prove
