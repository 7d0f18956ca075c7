// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/low_rank_shape.h"
#include "sim/prove/gradient_prover.h"
#include "sim/prove/prove_parts.h"

namespace convoy::inline prove {
namespace gradients {

void GradientProver::check_replicas(std::size_t p, const std::vector<std::uint32_t>& roles) {
  if (averages()) {
    check_averaged(p, roles);
    return;
  }
  std::size_t members = 0;
  for (const std::uint32_t r : roles) members += plan_.roles[r].members.size();
  const std::set<std::uint32_t>& buckets = uses_[roles.front()].buckets_of[p];
  for (const std::uint32_t r : roles) {
    const std::set<std::uint32_t>& own = uses_[r].buckets_of[p];
    const std::string role = name_of(plan_.roles[r], machine_);
    const std::string& name = graph_.parameters[p].name;
    if (own.size() > 1)
      throw Refuted(fmt::format("{}: the gradient of {} is sent {} times", role, name, own.size()));
    if (own.empty() && members > 1)
      throw Refuted(
          fmt::format("{}: the gradient of {} stays there: no message brings it to the {} other "
                      "devices that have a replica",
                      role, name, members - 1));
    if (own != buckets)
      throw Refuted(fmt::format("{}: the gradient of {} goes in another message than on {}", role, name,
                                name_of(plan_.roles[roles.front()], machine_)));
  }
  if (buckets.empty()) return;
  std::vector<CommId> first;
  for (const std::uint32_t r : roles) {
    std::vector<CommId> comms = comms_of(r, uses_[r].buckets[*buckets.begin()]);
    if (r == roles.front())
      first = comms;
    else if (comms != first)
      throw Refuted(fmt::format("{}: {} goes through other messages than on {}",
                                name_of(plan_.roles[r], machine_), graph_.parameters[p].name,
                                name_of(plan_.roles[roles.front()], machine_)));
  }
  for (const CommId comm : first) rounds_.check_collective(comm, roles);
}

void GradientProver::check_parts(std::size_t p, const std::vector<std::uint32_t>& roles) {
  for (const std::uint32_t r : roles) {
    const std::set<std::uint32_t>& own = uses_[r].buckets_of[p];
    if (own.size() > 1)
      throw Refuted(fmt::format("{}: the gradient of {} is sent {} times", name_of(plan_.roles[r], machine_),
                                graph_.parameters[p].name, own.size()));
    if (own.empty())
      for (const EndpointId e : plan_.roles[r].members) parts_->check_sum({p}, {e});
    else
      check_parts_of(r, p, *own.begin());
  }
}

void GradientProver::check_parts_of(std::uint32_t r, std::size_t p, std::uint32_t bucket) {
  if (!known_parts_.insert({r, bucket}).second) return;
  const std::vector<CommId> comms = comms_of(r, uses_[r].buckets[bucket]);
  if (comms.empty())
    throw Refuted(fmt::format("{}: {} is in a message that goes nowhere", name_of(plan_.roles[r], machine_),
                              graph_.parameters[p].name));
  std::vector<std::uint32_t> role_of(machine_.endpoint_count(), 0);
  for (std::uint32_t other = 0; other < plan_.roles.size(); ++other)
    for (const EndpointId e : plan_.roles[other].members) role_of[e] = other;
  const std::vector<std::vector<EndpointId>>& groups = rounds_.check_rounds_of(comms.front());
  std::size_t members = 0;
  for (const std::vector<EndpointId>& group : groups) {
    const auto of_role =
        std::count_if(group.begin(), group.end(), [&](EndpointId e) { return role_of[e] == r; });
    if (of_role == 0) continue;
    members += static_cast<std::size_t>(of_role);
    for (const EndpointId e : group) {
      const auto other = uses_[role_of[e]].buckets.find(bucket);
      if (other == uses_[role_of[e]].buckets.end() || comms_of(role_of[e], other->second) != comms)
        throw Refuted(fmt::format("{}: {} goes through other messages than on {}", machine_.endpoint_name(e),
                                  graph_.parameters[p].name, name_of(plan_.roles[r], machine_)));
    }
    parts_->check_sum(meaning_.buckets[bucket].parameters, group);
  }
  if (members != plan_.roles[r].members.size())
    throw Refuted(fmt::format("{}: {} of {} devices are in '{}'", name_of(plan_.roles[r], machine_), members,
                              plan_.roles[r].members.size(), plan_.communications[comms.front()].name));
  for (const CommId comm : comms)
    if (rounds_.check_rounds_of(comm) != groups)
      throw Refuted(fmt::format("'{}' is of other devices than '{}'", plan_.communications[comm].name,
                                plan_.communications[comms.front()].name));
}

double GradientProver::elements(std::uint32_t r, std::size_t p) const {
  return parts_ ? parts_->elements(p, plan_.roles[r].members.front())
                : static_cast<double>(graph_.parameters[p].elements);
}

void GradientProver::check_bucket(std::uint32_t r, std::uint32_t id, const BucketUse& use) {
  const BucketMeaning& bucket = meaning_.buckets[id];
  if (bucket.parameters.empty())
    throw Refuted(fmt::format("{}: a bucket has no tensors", name_of(plan_.roles[r], machine_)));
  check_members(r, bucket);
  check_bytes(r, bucket, use);
  if (!use.averages.empty() || !acts(use, Act::mean).empty()) {
    check_average_bucket(r, bucket, use);
    return;
  }
  check_factors(r, bucket, use);
  if (bucket.zero == 0) {
    check_sum(r, bucket, use);
    return;
  }
  if (!use.sums.empty())
    throw Refuted(fmt::format("{}: sums what its members have only shares of", at(r, use.sums[0])));
  // Placed work may have gradients of others, whose completeness prove_parts() has checked.
  if (plan_.endless() || is_placed(meaning_)) {
    if (bucket.zero > 1)
      throw NotCovered("shares of gradients or parameters of placed work, or of an endless pipeline");
    check_shared_states(r, bucket, use);
    return;
  }
  check_scatters(r, bucket, use);
  if (bucket.zero == 3)
    check_gathers_before(r, bucket, use);
  else
    check_gather_after(r, bucket, use);
}

void GradientProver::check_members(std::uint32_t r, const BucketMeaning& bucket) const {
  const auto times = [&](std::size_t p) {
    const auto of = uses_[r].updates.find(graph_.parameters[p].layer);
    return of == uses_[r].updates.end() ? 0 : of->second.size();
  };
  const std::size_t first = bucket.parameters.front();
  for (const std::size_t p : bucket.parameters)
    if (times(p) == 0 || times(p) != times(first))
      throw Refuted(fmt::format("{}: {} and {} are in one bucket, and are updated {} and {} times",
                                name_of(plan_.roles[r], machine_), graph_.parameters[first].name,
                                graph_.parameters[p].name, times(first), times(p)));
}

void GradientProver::check_bytes(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const {
  if (bucket.coding == BucketMeaning::Coding::low_rank) {
    double first = 0, second = 0;  // elements
    for (const std::size_t p : bucket.parameters) {
      const double all = elements(r, p);
      const auto shape = low_rank_shape(graph_.model, graph_.parameters[p], all, bucket.detail);
      first += shape ? shape->rows * shape->rank : all;
      second += shape ? shape->columns * shape->rank : 0;
    }
    const double element = element_bytes(graph_.options.precision);
    for (const TaskId t : use.sums) check_bytes_of(r, plan_.roles[r].program[t].comm, first * element);
    for (const TaskId t : use.factor_sums)
      check_bytes_of(r, plan_.roles[r].program[t].comm, second * element);
    return;
  }
  if (bucket.element_bytes == 0) return;  // which gradients are sent, and how many, compression decides
  double bytes = 0;
  for (const std::size_t p : bucket.parameters) bytes += bucket.element_bytes * elements(r, p);
  for (const CommId id : comms_of(r, use)) check_bytes_of(r, id, bytes);
}

void GradientProver::check_bytes_of(std::uint32_t r, CommId id, double bytes) const {
  if (const Communication& comm = plan_.communications[id]; std::abs(comm.bytes - bytes) > 1e-9 * bytes)
    throw Refuted(fmt::format("{}: '{}' carries {} bytes, and its tensors have {}",
                              name_of(plan_.roles[r], machine_), comm.name, comm.bytes, bytes));
}

void GradientProver::check_waits(std::uint32_t r, const Event& event, TaskId message, std::size_t p) const {
  if (event.place < order(r).ends[message])
    throw Refuted(fmt::format("{}: {} does not wait for '{}', which brings {}", at(r, event.task),
                              graph_.operations[event.operation].name, comm_name(r, message),
                              graph_.parameters[p].name));
}

}  // namespace gradients

}  // namespace convoy::prove
