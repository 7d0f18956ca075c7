// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/prove/gradient_prover.h"
#include "sim/prove/prove_averages.h"

namespace convoy::inline prove {
namespace gradients {

std::vector<std::size_t> GradientProver::version_numbers(std::uint32_t r, std::uint32_t layer) {
  std::vector<std::size_t> numbers = average_numbers(r, layer);
  for (const Event& update : uses_[r].updates[layer]) numbers.push_back(update.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::size_t> GradientProver::average_numbers(std::uint32_t r, std::uint32_t layer) const {
  std::vector<std::size_t> numbers;
  for (const auto& [id, use] : uses_[r].buckets) {
    const std::vector<std::size_t>& of = meaning_.buckets[id].parameters;
    if (std::any_of(of.begin(), of.end(), [&](std::size_t p) { return graph_.parameters[p].layer == layer; }))
      for (const Act act : {Act::mean, Act::slow})
        for (const Event& event : acts(use, act)) numbers.push_back(event.number);
  }
  return numbers;
}

std::size_t GradientProver::averages_before(std::uint32_t r, std::uint32_t layer, const Event& event) const {
  const std::vector<std::size_t> numbers = average_numbers(r, layer);
  return static_cast<std::size_t>(std::count_if(numbers.begin(), numbers.end(),
                                                [&](std::size_t number) { return number < event.number; }));
}

void GradientProver::check_averaged(std::size_t p, const std::vector<std::uint32_t>& roles) {
  std::vector<EndpointId> members;
  for (const std::uint32_t r : roles)
    members.insert(members.end(), plan_.roles[r].members.begin(), plan_.roles[r].members.end());
  std::vector<CommId> first;
  for (const std::uint32_t r : roles) {
    const std::string role = name_of(plan_.roles[r], machine_);
    const std::string& name = graph_.parameters[p].name;
    std::vector<CommId> comms;
    std::size_t buckets = 0;
    bool with_all = true;
    for (const std::uint32_t id : uses_[r].buckets_of[p]) {
      const BucketUse& use = uses_[r].buckets[id];
      buckets += !use.averages.empty();
      for (const TaskId t : use.averages) {
        comms.push_back(plan_.roles[r].program[t].comm);
        with_all = meaning_.communications[plan_.communications[comms.back()].meaning].kind == Kind::average;
      }
      for (const TaskId t : use.sums) check_own_images(r, plan_.roles[r].program[t].comm);
      if (use.averages.empty() && use.sums.empty())
        throw Refuted(fmt::format("{}: {} is in a message that goes nowhere", role, name));
    }
    if (buckets != (members.size() > 1 ? 1 : 0) && (buckets > 0 || !is_summed_by_all(r, p, members.size())))
      throw Refuted(fmt::format("{}: {} is averaged in {} messages", role, name, buckets));
    if (uses_[r].buckets_of[p].size() == buckets) check_own_images(r, std::nullopt);
    if (r == roles.front())
      first = comms;
    else if (comms != first)
      throw Refuted(fmt::format("{}: {} is averaged in other messages than on {}", role, name,
                                name_of(plan_.roles[roles.front()], machine_)));
    if (comms.empty() || r != roles.front() || !known_averages_.insert(comms).second) continue;
    if (with_all)
      rounds_.check_collective(comms.front(), roles);
    else
      check_neighbours(p, comms, roles, members);
  }
}

bool GradientProver::is_summed_by_all(std::uint32_t r, std::size_t p, std::size_t replicas) {
  for (const std::uint32_t id : uses_[r].buckets_of[p])
    for (const TaskId t : uses_[r].buckets[id].sums)
      for (const std::vector<EndpointId>& group : rounds_.check_rounds_of(plan_.roles[r].program[t].comm))
        if (group.size() == replicas) return true;
  return false;
}

void GradientProver::check_neighbours(std::size_t p, const std::vector<CommId>& comms,
                                      const std::vector<std::uint32_t>& roles,
                                      const std::vector<EndpointId>& members) {
  if (!gossip_) throw NotCovered("the strategy does not say with whom parameters are averaged");
  check_exchanges(plan_, machine_, comms, members, *gossip_);
  for (const CommId comm : comms)
    if (const std::optional<CommId> request = request_of(comm))
      check_request(plan_, machine_, *request, comm);
  const std::uint32_t together =
      meaning_.communications[plan_.communications[comms.front()].meaning].together;
  if (together == 1) return;
  std::set<std::set<EndpointId>> summed;
  for (const std::uint32_t r : roles)
    for (const std::uint32_t id : uses_[r].buckets_of[p])
      for (const TaskId t : uses_[r].buckets[id].sums)
        for (const std::vector<EndpointId>& group : rounds_.check_rounds_of(plan_.roles[r].program[t].comm))
          summed.insert({group.begin(), group.end()});
  const std::vector<EndpointId>& all =
      plan_.patterns[plan_.communications[comms.front()].pattern].groups.front();
  for (auto first = all.begin(); first != all.end(); first += together)
    if (!summed.contains({first, first + together}))
      throw Refuted(fmt::format("{} and {} others pass on parameters, but do not sum the gradients of {}",
                                machine_.endpoint_name(*first), together - 1, graph_.parameters[p].name));
}

void GradientProver::check_own_images(std::uint32_t r, std::optional<CommId> sum) {
  if (!known_sums_.insert({r, sum}).second) return;
  for (const EndpointId e : plan_.roles[r].members) {
    double images = 0;
    std::vector<EndpointId> group{e};
    if (sum)
      for (const std::vector<EndpointId>& each : rounds_.check_rounds_of(*sum))
        if (std::find(each.begin(), each.end(), e) != each.end()) group = each;
    for (const EndpointId other : group) images += images_of(other);
    if (std::abs(images - meaning_.own_images[e]) > 1e-9 * images)
      throw Refuted(fmt::format("{}: it updates with the gradients of {} images, as if they were {}",
                                machine_.endpoint_name(e), images, meaning_.own_images[e]));
  }
}

double GradientProver::images_of(EndpointId endpoint) const {
  for (std::uint32_t r = 0; r < uses_.size(); ++r) {
    const std::vector<EndpointId>& members = plan_.roles[r].members;
    if (std::find(members.begin(), members.end(), endpoint) == members.end()) continue;
    double images = 0;
    if (!uses_[r].gradients.empty())
      for (const Event& event : uses_[r].gradients.begin()->second) images += event.images.count;
    return images / plan_.steps;
  }
  return 0;
}

void GradientProver::check_average_bucket(std::uint32_t r, const BucketMeaning& bucket,
                                          const BucketUse& use) {
  AverageUse average;
  average.role = name_of(plan_.roles[r], machine_);
  average.is_slow = bucket.slow_momentum > 0;
  const auto at = [](const Event& event) { return AverageUse::At{event.place, event.number}; };
  for (const TaskId t : use.averages) {
    const std::vector<Task>& program = plan_.roles[r].program.get();
    const Communication& comm = plan_.communications[program[t].comm];
    std::uint32_t begins = order(r).begins[t];
    if (const std::optional<CommId> request = request_of(program[t].comm)) {
      std::size_t requests = 0;
      for (TaskId other = 0; other < program.size(); ++other)
        if (program[other].kind == Task::Kind::send && program[other].comm == *request)
          begins = order(r).begins[other], ++requests;
      if (requests != 1)
        throw Refuted(fmt::format("{}: it asks {} times for '{}'", average.role, requests, comm.name));
    }
    average.messages.push_back({comm.name, begins, order(r).ends[t]});
    average.with_all = meaning_.communications[comm.meaning].kind == Kind::average;
  }
  for (const Event& event : acts(use, Act::mean)) average.means.push_back(at(event));
  for (const Event& event : acts(use, Act::slow)) average.slows.push_back(at(event));
  for (const std::size_t p : bucket.parameters) {
    average.updates.clear();
    for (const Event& event : updates_of(r, p)) average.updates.push_back(at(event));
    check_average(average);
  }
}

}  // namespace gradients

}  // namespace convoy::prove
