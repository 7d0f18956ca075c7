// SPDX-License-Identifier: MIT
#include "sim/numerics/twin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/plan/weight_versions.h"

namespace convoy::inline numerics {

using CommKind = CommMeaning::Kind;

namespace {

/// Of the group's members that are `together` with the endpoint: who sends to the first of them from outside.
std::vector<EndpointId> senders_to_first(const Pattern& pattern, EndpointId endpoint,
                                         std::uint32_t together) {
  const std::vector<EndpointId>& group = pattern.groups.front();
  const auto at =
      static_cast<std::uint32_t>(std::find(group.begin(), group.end(), endpoint) - group.begin()) / together;
  std::vector<EndpointId> senders;
  for (const Round& round : pattern.rounds)
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double) {
      if (to == at * together && from / together != at) senders.push_back(group[from]);
    });
  return senders;
}

}  // namespace

template <class Real>
Twin<Real>::Twin(const Lesson& lesson, const Plan& plan, const Machine& machine, const ReplayResult& replayed,
                 double learning_rate)
    : lesson_(lesson),
      plan_(plan),
      learning_rate_(learning_rate),
      classroom_(lesson, plan, machine),
      order_(twin_order(plan, machine, classroom_.ends(), replayed)),
      batch_(std::llround(plan.images * plan.steps)) {
  if (plan.endless()) begin_endless();
}

template <class Real>
double Twin<Real>::step() {
  const std::int64_t first_image = first_step_ * std::llround(plan_.images) + step_ * batch_;
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : plan_.roles[r].members)
      classroom_.at(e).begin_step(first_step_ + step_, first_image, 1 / images_of_update(e));
  began_.clear(), carried_.clear(), carried_parts_.clear(), contributed_.clear();
  now_ = 0;
  for (const TwinEvent& event : order_) happen(event);
  ++step_;
  double loss = 0;
  for (const EndpointId e : classroom_.devices()) loss += classroom_.at(e).loss();
  return loss / (plan_.images * plan_.steps);
}

template <class Real>
double Twin<Real>::images_of_update(EndpointId endpoint) const {
  const std::vector<double>& own = plan_.meaning->own_images;
  return own.empty() ? plan_.images : own[endpoint];
}

template <class Real>
void Twin<Real>::happen(const TwinEvent& event) {
  ++now_;
  const Task& task = plan_.roles[event.role].program[event.task];
  event.begins ? begin(event, task) : end(event, task);
}

/// Images that an update of a layer has the gradients of, over all of the layer's replicas, the plan says.
template <class Real>
void Twin<Real>::begin_endless() {
  const TrainingGraph& graph = lesson_.graph;
  std::map<std::uint32_t, std::vector<double>> images;  // by layer and update
  std::vector<bool> completes(graph.operations.size(), false);
  for (const Parameter& parameter : graph.parameters) completes[parameter.gradient] = true;
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r) {
    const Role& role = plan_.roles[r];
    std::map<std::uint32_t, std::size_t> updates;
    for (TaskId t = 0; t < role.program.size(); ++t) {
      const Task& task = role.program[t];
      std::set<std::int64_t> micro_batches;
      for (const PlanOp& op : task.ops) {
        if (op.meaning == no_meaning) continue;
        const OpMeaning& means = plan_.meaning->operations[op.meaning];
        if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
        const Operation& operation = graph.operations[means.operation];
        if (operation.phase == Phase::update) {
          ++updates[operation.layer];
          continue;
        }
        micro_batches.insert(means.micro_batch);
        if (!completes[means.operation]) continue;
        std::vector<double>& of_layer = images[operation.layer];
        const std::size_t update = updates[operation.layer];
        of_layer.resize(std::max(of_layer.size(), update + 1), 0);
        of_layer[update] += means.images.count * static_cast<double>(role.members.size());
      }
      if (task.kind != Task::Kind::compute) {
        const CommMeaning& carries = plan_.meaning->communications[plan_.communications[task.comm].meaning];
        if (carries.kind == CommKind::results) micro_batches.insert(carries.micro_batch);
      }
      for (const EndpointId e : role.members)
        for (const std::int64_t m : micro_batches) ++uses_[{e, m}];
    }
  }
  const std::vector<std::map<std::int64_t, std::size_t>> versions = doubled_versions(plan_, graph);
  for (const EndpointId e : classroom_.devices()) {
    classroom_.at(e).begin_step(0, 0, 1);
    classroom_.at(e).keep_versions(images, versions[classroom_.role_of(e)]);
  }
  const EndlessRun& run = *plan_.endless();
  left_.assign(run.steps.size(), 0);
  for (std::size_t s = 0; s < run.steps.size(); ++s)
    for (const EndlessRun::End& end : run.steps[s])
      for (const EndpointId e : plan_.roles[end.role].members)
        if (ends_step_.try_emplace({e, end.task}, s).second) ++left_[s];
}

template <class Real>
double Twin<Real>::next_step() {
  const auto s = static_cast<std::size_t>(step_++);
  while (left_.at(s) > 0) {
    const TwinEvent& event = order_.at(next_++);
    happen(event);
    if (event.begins) continue;
    if (const auto ends = ends_step_.find({event.endpoint, event.task}); ends != ends_step_.end())
      --left_[ends->second];
    forget(event, plan_.roles[event.role].program[event.task]);
  }
  double loss = 0;
  for (const EndpointId e : classroom_.devices()) loss += classroom_.at(e).loss();
  const double mean = loss_images_ > 0 ? (loss - loss_) / loss_images_ : 0;
  loss_ = loss, loss_images_ = 0;
  return mean;
}

template <class Real>
void Twin<Real>::finish() {
  while (next_ < order_.size()) happen(order_[next_++]);
}

/// What is not needed any more when a task has ended: a micro-batch after the last task that has to do with
/// it, a result when it has come, and gradients when all members have their sum.
template <class Real>
void Twin<Real>::forget(const TwinEvent& event, const Task& task) {
  std::set<std::int64_t> micro_batches;
  for (const PlanOp& op : task.ops) {
    if (op.meaning == no_meaning) continue;
    const OpMeaning& means = plan_.meaning->operations[op.meaning];
    if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
    const Operation& operation = lesson_.graph.operations[means.operation];
    if (operation.phase != Phase::update) micro_batches.insert(means.micro_batch);
    if (operation.phase == Phase::forward && operation.part == OperationPart::loss && !means.is_dropped)
      loss_images_ += means.images.count;
  }
  if (task.kind != Task::Kind::compute) {
    const CommMeaning& carries = plan_.meaning->communications[plan_.communications[task.comm].meaning];
    if (carries.kind == CommKind::results) micro_batches.insert(carries.micro_batch);
    if (task.kind == Task::Kind::receive)
      for (const EndpointId sender : classroom_.ends_of(task.comm).senders[event.endpoint])
        carried_.erase({task.comm, sender});
    std::size_t members = 0;
    for (const auto& group : plan_.patterns[plan_.communications[task.comm].pattern].groups)
      members += group.size();
    if (task.kind == Task::Kind::collective && ++collected_[task.comm] == members)
      contributed_.erase(contributed_.lower_bound({task.comm, 0}),
                         contributed_.lower_bound({task.comm + 1, 0}));
  }
  for (const std::int64_t m : micro_batches)
    if (--uses_.at({event.endpoint, m}) == 0) classroom_.at(event.endpoint).forget(m);
}

template <class Real>
void Twin<Real>::begin(const TwinEvent& event, const Task& task) {
  began_[{event.endpoint, event.task}] = now_;
  if (task.kind == Task::Kind::compute || task.kind == Task::Kind::receive) return;
  const CommMeaning& means = plan_.meaning->communications[plan_.communications[task.comm].meaning];
  const Sender sender{task.comm, event.endpoint};
  if (means.kind == CommKind::agree) return;
  if (has_parts() && (means.kind == CommKind::results || means.kind == CommKind::parts)) {
    for (const CommMeaning::Result& result : means.results)
      carried_parts_[sender].push_back(
          classroom_.at(event.endpoint)
              .send_part(result, means, first_image(event.endpoint, means.images), now_));
    return;
  }
  if (means.kind != CommKind::results) {
    if (means.updates) classroom_.at(event.endpoint).update_for_node(means.bucket, learning_rate_, now_);
    contributed_[sender] = contribution(event.endpoint, means);
    return;
  }
  for (const CommMeaning::Result& result : means.results)
    carried_[sender].push_back(classroom_.at(event.endpoint)
                                   .results()
                                   .send(result, means, first_image(event.endpoint, means.images), now_));
}

template <class Real>
std::vector<Real> Twin<Real>::contribution(EndpointId endpoint, const CommMeaning& means) {
  Member<Real>& member = classroom_.at(endpoint);
  switch (means.kind) {
    case CommKind::push:
    case CommKind::collect:
      return member.pushed_gradients(means.bucket, now_);
    case CommKind::hand_out:
      return member.whole_parameters(means.bucket);
    case CommKind::pull:
    case CommKind::gather_parameters:
    case CommKind::average:
    case CommKind::exchange:
      return member.parameters(means.bucket);
    case CommKind::sum_factors:
      return member.sent_factors(means.bucket);
    default:
      return member.sent_gradients(means.bucket, means.kind == CommKind::scatter);
  }
}

template <class Real>
void Twin<Real>::end(const TwinEvent& event, const Task& task) {
  if (task.kind == Task::Kind::compute) {
    compute(event, task);
    return;
  }
  const CommMeaning& means = plan_.meaning->communications[plan_.communications[task.comm].meaning];
  if (task.kind == Task::Kind::receive) receive(event.endpoint, task.comm, means);
  if (task.kind == Task::Kind::collective) collect(event.endpoint, task.comm, means);
}

template <class Real>
std::int64_t Twin<Real>::first_image(EndpointId endpoint, const ImageRange& images) const {
  return std::llround(images.first + plan_.meaning->lanes[endpoint] * images.count);
}

template <class Real>
void Twin<Real>::compute(const TwinEvent& event, const Task& task) {
  const std::uint64_t began = began_.at({event.endpoint, event.task});
  Member<Real>& member = classroom_.at(event.endpoint);
  if (task.meaning != no_meaning) {
    const OpMeaning& means = plan_.meaning->operations[task.meaning];
    if (means.act == OpMeaning::Act::collect)
      member.need_sums_of_node(means.bucket, began);
    else
      member.serve(means.bucket, 1, learning_rate_, began);
  }
  for (const PlanOp& op : task.ops) {
    if (op.meaning == no_meaning) continue;
    const OpMeaning& means = plan_.meaning->operations[op.meaning];
    member.run(means, first_image(event.endpoint, means.images), began, learning_rate_);
  }
}

template <class Real>
void Twin<Real>::receive(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  Member<Real>& member = classroom_.at(endpoint);
  if (has_parts()) {
    take_parts(endpoint, comm, means, classroom_.ends_of(comm).senders[endpoint], false);
    return;
  }
  for (const EndpointId sender : classroom_.ends_of(comm).senders[endpoint]) {
    if (means.kind == CommKind::results) {
      const auto sent = carried_.find({comm, sender});
      if (sent == carried_.end())
        throw MissingValue(fmt::format("'{}' comes from nobody", plan_.communications[comm].name));
      for (std::size_t i = 0; i < means.results.size(); ++i)
        member.results().receive(means.results[i], means, sent->second[i],
                                 first_image(endpoint, means.images), now_);
      continue;
    }
    const auto sent = contributed_.find({comm, sender});
    if (sent == contributed_.end())
      throw MissingValue(fmt::format("'{}' comes from nobody", plan_.communications[comm].name));
    take_from(sender, member, means, sent->second);
  }
  // Of a ring in the node each has its part now, and gets the others by a gather.
  if (means.kind == CommKind::hand_out || (means.kind == CommKind::pull && !member.is_in_ring(means.bucket)))
    member.complete_parameters(means.bucket, now_);
}

/// Of results of which devices have parts.
template <class Real>
void Twin<Real>::take_parts(EndpointId endpoint, CommId comm, const CommMeaning& means,
                            const std::vector<EndpointId>& senders, bool in_group) {
  for (std::size_t i = 0; i < means.results.size(); ++i) {
    std::vector<const typename Member<Real>::CarriedPart*> sent;
    for (const EndpointId sender : senders) {
      const auto found = carried_parts_.find({comm, sender});
      if (found == carried_parts_.end())
        throw MissingValue(fmt::format("'{}' comes from nobody", plan_.communications[comm].name));
      // What is the device's own, it has, unless it is added up.
      if (sender != endpoint || means.kind == CommKind::parts) sent.push_back(&found->second[i]);
    }
    classroom_.at(endpoint).take_part(means.results[i], means, sent, in_group, now_);
  }
}

/// Gradients, or parameters, of servers and in nodes.
template <class Real>
void Twin<Real>::take_from(EndpointId sender, Member<Real>& member, const CommMeaning& means,
                           const std::vector<Real>& values) {
  switch (means.kind) {
    case CommKind::push:
      member.add_to_range(means.bucket, values, now_);
      break;
    case CommKind::collect:
      member.add_of_node(means.bucket, values, now_);
      break;
    case CommKind::hand_out:
      member.take_parameters(means.bucket, {0, values.size()}, values);
      break;
    default: {
      BucketRange range = classroom_.at(sender).range(means.bucket);
      if (member.is_in_ring(means.bucket)) {
        const BucketRange part = member.part(means.bucket);
        range = {std::max(range.begin, part.begin), std::min(range.end, part.end)};
      }
      member.take_parameters(means.bucket, range, values);
    }
  }
}

/// Sums are made in the order of the ranks, whatever the algorithm's rounds: these do not say which part of a
/// bucket a message has.
template <class Real>
void Twin<Real>::collect(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  if (means.kind == CommKind::agree) return;
  Member<Real>& member = classroom_.at(endpoint);
  const Pattern& pattern = plan_.patterns[plan_.communications[comm].pattern];
  if (means.kind == CommKind::exchange) {
    mix(endpoint, comm, means);
    return;
  }
  std::vector<Real> sum;
  const std::vector<EndpointId>& group = pattern.groups[classroom_.ends_of(comm).group[endpoint]];
  if (means.kind == CommKind::results || means.kind == CommKind::parts) {
    take_parts(endpoint, comm, means, group, true);
    return;
  }
  for (const EndpointId other : group) {
    const auto sent = contributed_.find({comm, other});
    if (sent == contributed_.end())
      throw MissingValue(fmt::format("a member takes no part in '{}'", plan_.communications[comm].name));
    if (means.kind == CommKind::gather_parameters) {
      if (other != endpoint)
        member.take_parameters(means.bucket, classroom_.at(other).part(means.bucket), sent->second);
      continue;
    }
    if (sum.empty())
      sum = sent->second;
    else
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += sent->second[e];
  }
  switch (means.kind) {
    case CommKind::gather_parameters:
      member.complete_parameters(means.bucket, now_);
      break;
    case CommKind::scatter:
      if (member.is_in_ring(means.bucket))
        member.add_of_node(means.bucket, sum, now_);
      else
        member.add_to_range(means.bucket, sum, now_);
      break;
    case CommKind::average:
      member.take_average(means.bucket, std::move(sum), group.size(), false, now_);
      break;
    case CommKind::sum_factors:
      member.take_factors(means.bucket, std::move(sum), now_);
      break;
    default:
      member.take_sum(means.bucket, std::move(sum), group.size(), now_);
  }
}

/// Of the neighbours that send to the endpoint, or to the first of those that have the same parameters.
template <class Real>
void Twin<Real>::mix(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  const std::vector<EndpointId> senders =
      means.together > 1
          ? senders_to_first(plan_.patterns[plan_.communications[comm].pattern], endpoint, means.together)
          : classroom_.ends_of(comm).senders[endpoint];
  std::vector<Real> sum(classroom_.at(endpoint).elements(means.bucket), Real{0});
  for (const EndpointId sender : senders) {
    const auto sent = contributed_.find({comm, sender});
    if (sent == contributed_.end())
      throw MissingValue(fmt::format("a member takes no part in '{}'", plan_.communications[comm].name));
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += sent->second[e];
  }
  classroom_.at(endpoint).take_average(means.bucket, std::move(sum), senders.size(), true, now_);
}

template class Twin<double>;
template class Twin<float>;

}  // namespace convoy::numerics
