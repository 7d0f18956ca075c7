// SPDX-License-Identifier: MIT
#include "sim/numerics/peer_twin.h"

#include <cmath>
#include <utility>

namespace convoy::inline numerics {

template <class Real>
PeerTwin<Real>::PeerTwin(const Lesson& lesson, const Plan& plan, const Machine& machine, double learning_rate)
    : lesson_(lesson), plan_(plan), learning_rate_(learning_rate), classroom_(lesson, plan, machine) {
  for (const Service::Client& client : plan.service()->clients) images_of_[client.device] = client.images;
}

template <class Real>
std::uint32_t PeerTwin<Real>::bucket_of(std::uint32_t exchange) const {
  const Communication& push = plan_.communications[plan_.service()->exchanges[exchange].push];
  return plan_.meaning->communications[push.meaning].bucket;
}

template <class Real>
void PeerTwin<Real>::happen(const ServiceLog::Event& event) {
  if (event.kind == ServiceLog::Event::Kind::update) meet(event);
  if (event.kind != ServiceLog::Event::Kind::begin) return;
  if (steps_[event.client] > 0) finish(event.client);
  begin(event.client);
}

/// Operations of the device's program that update parameters, or all others.
template <class Real>
void PeerTwin<Real>::run(EndpointId device, bool updates) {
  for (const Task& task : plan_.roles[classroom_.role_of(device)].program) {
    const std::uint64_t now = ++happened_[device];
    for (const PlanOp& op : task.ops) {
      if (op.meaning == no_meaning) continue;
      const OpMeaning& means = plan_.meaning->operations[op.meaning];
      if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
      if ((lesson_.graph.operations[means.operation].phase == Phase::update) != updates) continue;
      const double first = means.images.first + plan_.meaning->lanes[device] * means.images.count;
      classroom_.at(device).run(means, std::llround(first), now, learning_rate_);
    }
  }
}

/// Gradients are those of the parameters with which the step begins, which are sent.
template <class Real>
void PeerTwin<Real>::begin(EndpointId device) {
  Member<Real>& member = classroom_.at(device);
  const double images = images_of_.at(device);
  const std::int64_t step = steps_[device]++;
  member.begin_step(step, step * std::llround(plan_.images), 1 / images);
  happened_[device] = 0;
  for (std::uint32_t x = 0; x < plan_.service()->exchanges.size(); ++x)
    exchanged_[{device, x}] = {member.parameters(bucket_of(x)), {}};
  run(device, false);
  loss_ += member.loss(), loss_images_ += images;
}

/// A neighbour's parameters have come: half of the difference is taken, and what was there goes back.
template <class Real>
void PeerTwin<Real>::meet(const ServiceLog::Event& event) {
  const std::uint32_t bucket = bucket_of(event.exchange);
  Member<Real>& member = classroom_.at(event.server);
  Exchanged& exchanged = exchanged_.at({event.client, event.exchange});
  exchanged.came = member.parameters(bucket);
  std::vector<Real> mean = exchanged.came;
  for (std::size_t e = 0; e < mean.size(); ++e) mean[e] = (mean[e] + exchanged.sent[e]) / 2;
  member.take_parameters(bucket, {0, mean.size()}, mean);
}

/// The end of the step: the other half of the difference is taken, and then the update is made.
template <class Real>
void PeerTwin<Real>::finish(EndpointId device) {
  Member<Real>& member = classroom_.at(device);
  for (std::uint32_t x = 0; x < plan_.service()->exchanges.size(); ++x) {
    const Exchanged& exchanged = exchanged_.at({device, x});
    if (exchanged.came.empty())
      throw MissingValue("a device ends its step, and its neighbour has not answered");
    std::vector<Real> own = member.parameters(bucket_of(x));
    for (std::size_t e = 0; e < own.size(); ++e) own[e] += (exchanged.came[e] - exchanged.sent[e]) / 2;
    member.take_parameters(bucket_of(x), {0, own.size()}, own);
  }
  run(device, true);
  images_ += images_of_.at(device);
}

template <class Real>
double PeerTwin<Real>::take_loss() {
  const double loss = loss_images_ > 0 ? loss_ / loss_images_ : 0;
  loss_ = loss_images_ = 0;
  return loss;
}

template class PeerTwin<double>;
template class PeerTwin<float>;

}  // namespace convoy::numerics
