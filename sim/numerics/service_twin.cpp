// SPDX-License-Identifier: MIT
#include "sim/numerics/service_twin.h"

#include <utility>

namespace convoy::inline numerics {

template <class Real>
ServiceTwin<Real>::ServiceTwin(const Lesson& lesson, const Plan& plan, const Machine& machine,
                               double learning_rate)
    : Base(lesson, plan, machine, learning_rate) {
  for (const Parameter& parameter : lesson.graph.parameters)
    all_elements_ += static_cast<double>(parameter.elements);
}

template <class Real>
void ServiceTwin<Real>::happen(const ServiceLog::Event& event) {
  switch (event.kind) {
    case ServiceLog::Event::Kind::begin:
      begin(event.client);
      return;
    case ServiceLog::Event::Kind::add:
    case ServiceLog::Event::Kind::update:
      serve(event);
      return;
    case ServiceLog::Event::Kind::answer: {
      const std::uint32_t bucket = bucket_of(event.exchange);
      const Member<Real>& server = classroom_.at(event.server);
      Member<Real>& client = classroom_.at(event.client);
      client.take_parameters(bucket, server.range(bucket), server.parameters(bucket));
      client.complete_parameters(bucket, 0);
      return;
    }
  }
}

/// The client's program up to its pushes: its parameters stay what they are until it has been answered.
template <class Real>
void ServiceTwin<Real>::begin(EndpointId client) {
  Member<Real>& member = this->begin_step(client);
  std::uint64_t now = 0;
  for (const Task& task : plan_.roles[classroom_.role_of(client)].program) {
    ++now;
    for (const PlanOp& op : task.ops) {
      if (op.meaning != no_meaning) this->run(plan_.meaning->operations[op.meaning], client, now);
    }
  }
  for (std::uint32_t x = 0; x < plan_.service()->exchanges.size(); ++x)
    pushed_[{client, x}] = member.pushed_gradients(bucket_of(x), now);
  this->add_loss(client);
}

/// What is updated at once is the mean of what has been added up: a quorum's, or one client's gradients.
template <class Real>
void ServiceTwin<Real>::serve(const ServiceLog::Event& event) {
  const std::uint32_t bucket = bucket_of(event.exchange);
  Member<Real>& server = classroom_.at(event.server);
  Added& added = added_[{event.server, event.exchange}];
  if (event.kind == ServiceLog::Event::Kind::add) {
    server.add_to_range(bucket, pushed_.at({event.client, event.exchange}), 0);
    ++added.pushes;
    added.images += images_of_.at(event.client);
    return;
  }
  server.serve(bucket, 1 / static_cast<double>(added.pushes), learning_rate_, 0);
  const BucketRange range = server.range(bucket);
  images_ += added.images * static_cast<double>(range.end - range.begin) / all_elements_;
  added = {};
}

template class ServiceTwin<double>;
template class ServiceTwin<float>;

}  // namespace convoy::numerics
