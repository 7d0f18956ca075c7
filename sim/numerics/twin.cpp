// SPDX-License-Identifier: MIT
#include "sim/numerics/twin.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::inline numerics {

using CommKind = CommMeaning::Kind;

template <class Real>
Twin<Real>::Twin(const Lesson& lesson, const Plan& plan, const Machine& machine, const ReplayResult& replayed,
                 double learning_rate)
    : lesson_(lesson),
      plan_(plan),
      learning_rate_(learning_rate),
      classroom_(lesson, plan, machine),
      order_(twin_order(plan, machine, classroom_.ends(), replayed)),
      batch_(std::llround(plan.images * plan.steps)) {}

template <class Real>
double Twin<Real>::step() {
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : plan_.roles[r].members)
      classroom_.at(e).begin_step(step_, step_ * batch_, 1 / images_of_update(e));
  began_.clear(), carried_.clear(), contributed_.clear();
  now_ = 0;
  for (const TwinEvent& event : order_) {
    ++now_;
    const Task& task = plan_.roles[event.role].program[event.task];
    event.begins ? begin(event, task) : end(event, task);
  }
  ++step_;
  double loss = 0;
  for (const EndpointId e : classroom_.devices()) loss += classroom_.at(e).results().loss();
  return loss / (plan_.images * plan_.steps);
}

template <class Real>
double Twin<Real>::images_of_update(EndpointId endpoint) const {
  const std::vector<double>& own = plan_.meaning->own_images;
  return own.empty() ? plan_.images : own[endpoint];
}

template <class Real>
void Twin<Real>::begin(const TwinEvent& event, const Task& task) {
  began_[{event.endpoint, event.task}] = now_;
  if (task.kind == Task::Kind::compute || task.kind == Task::Kind::receive) return;
  const CommMeaning& means = plan_.meaning->communications[plan_.communications[task.comm].meaning];
  const Sender sender{task.comm, event.endpoint};
  if (means.kind != CommKind::results) {
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
      return member.pushed_gradients(means.bucket);
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
  if (task.meaning != no_meaning)
    member.serve(plan_.meaning->operations[task.meaning].bucket, 1, learning_rate_, began);
  for (const PlanOp& op : task.ops) {
    if (op.meaning == no_meaning) continue;
    const OpMeaning& means = plan_.meaning->operations[op.meaning];
    member.run(means, first_image(event.endpoint, means.images), began, learning_rate_);
  }
}

template <class Real>
void Twin<Real>::receive(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  Member<Real>& member = classroom_.at(endpoint);
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
    if (means.kind == CommKind::push)
      member.add_to_range(means.bucket, sent->second, now_);
    else
      member.take_parameters(means.bucket, classroom_.at(sender).range(means.bucket), sent->second);
  }
  if (means.kind == CommKind::pull) member.complete_parameters(means.bucket, now_);
}

/// Sums are made in the order of the ranks, whatever the algorithm's rounds: these do not say which part of a
/// bucket a message has.
template <class Real>
void Twin<Real>::collect(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  Member<Real>& member = classroom_.at(endpoint);
  const Pattern& pattern = plan_.patterns[plan_.communications[comm].pattern];
  if (means.kind == CommKind::exchange) {
    mix(endpoint, comm, means);
    return;
  }
  std::vector<Real> sum;
  const std::vector<EndpointId>& group = pattern.groups[classroom_.ends_of(comm).group[endpoint]];
  for (const EndpointId other : group) {
    const auto sent = contributed_.find({comm, other});
    if (sent == contributed_.end())
      throw MissingValue(fmt::format("a member takes no part in '{}'", plan_.communications[comm].name));
    if (means.kind == CommKind::gather_parameters) {
      if (other != endpoint)
        member.take_parameters(means.bucket, classroom_.at(other).range(means.bucket), sent->second);
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

/// Of the neighbours that send to the endpoint.
template <class Real>
void Twin<Real>::mix(EndpointId endpoint, CommId comm, const CommMeaning& means) {
  const std::vector<EndpointId>& senders = classroom_.ends_of(comm).senders[endpoint];
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
