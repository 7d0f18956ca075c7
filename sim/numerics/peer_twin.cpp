// SPDX-License-Identifier: MIT
#include "sim/numerics/peer_twin.h"

#include <utility>

namespace convoy::inline numerics {

template <class Real>
void PeerTwin<Real>::happen(const ServiceLog::Event& event) {
  if (event.kind == ServiceLog::Event::Kind::update) meet(event);
  if (event.kind != ServiceLog::Event::Kind::begin) return;
  if (steps_[event.client] > 0) finish(event.client);
  begin(event.client);
}

/// Operations of the device's program that update parameters, or all others.
template <class Real>
void PeerTwin<Real>::run_all(EndpointId device, bool updates) {
  for (const Task& task : plan_.roles[classroom_.role_of(device)].program) {
    const std::uint64_t now = ++happened_[device];
    for (const PlanOp& op : task.ops) {
      if (op.meaning == no_meaning) continue;
      const OpMeaning& means = plan_.meaning->operations[op.meaning];
      if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
      if ((lesson_.graph.operations[means.operation].phase == Phase::update) != updates) continue;
      this->run(means, device, now);
    }
  }
}

/// Gradients are those of the parameters with which the step begins, which are sent.
template <class Real>
void PeerTwin<Real>::begin(EndpointId device) {
  Member<Real>& member = this->begin_step(device);
  happened_[device] = 0;
  for (std::uint32_t x = 0; x < plan_.service()->exchanges.size(); ++x)
    exchanged_[{device, x}] = {member.parameters(bucket_of(x)), {}};
  run_all(device, false);
  this->add_loss(device);
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
  run_all(device, true);
  images_ += images_of_.at(device);
}

template class PeerTwin<double>;
template class PeerTwin<float>;

}  // namespace convoy::numerics
