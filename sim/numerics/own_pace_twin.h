// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <map>

#include "sim/numerics/classroom.h"
#include "sim/replay/replay.h"

namespace convoy::inline numerics {

/// What twins of plans with a Service share: its clients take steps each at its own pace, so that images and losses are
/// counted as steps begin and parameters are updated.
template <class Real>
class OwnPaceTwin {
 public:
  OwnPaceTwin(const Lesson& lesson, const Plan& plan, const Machine& machine, double learning_rate)
      : lesson_(lesson), plan_(plan), learning_rate_(learning_rate), classroom_(lesson, plan, machine) {
    for (const Service::Client& client : plan.service()->clients) images_of_[client.device] = client.images;
  }

  /// Images from which parameters have been updated; where only some of them have, their share of an image.
  double images() const { return images_; }
  /// Mean loss of the images of steps that have begun since this was asked last; 0 of none.
  double take_loss() {
    const double loss = loss_images_ > 0 ? loss_ / loss_images_ : 0;
    loss_ = loss_images_ = 0;
    return loss;
  }
  const Classroom<Real>& classroom() const { return classroom_; }

 protected:
  /// Its images are those that the client would have in a step of all clients together.
  Member<Real>& begin_step(EndpointId client) {
    Member<Real>& member = classroom_.at(client);
    const std::int64_t step = steps_[client]++;
    member.begin_step(step, step * std::llround(plan_.images), 1 / images_of_.at(client));
    return member;
  }

  /// An operation of the client's program, on the images that are the client's.
  void run(const OpMeaning& means, EndpointId client, std::uint64_t now) {
    const double first = means.images.first + plan_.meaning->lanes[client] * means.images.count;
    classroom_.at(client).run(means, std::llround(first), now, learning_rate_);
  }

  void add_loss(EndpointId client) {
    loss_ += classroom_.at(client).loss();
    loss_images_ += images_of_.at(client);
  }

  std::uint32_t bucket_of(std::uint32_t exchange) const {
    const Communication& push = plan_.communications[plan_.service()->exchanges[exchange].push];
    return plan_.meaning->communications[push.meaning].bucket;
  }

  const Lesson& lesson_;
  const Plan& plan_;
  double learning_rate_;
  Classroom<Real> classroom_;
  std::map<EndpointId, double> images_of_;    ///< of a step, by client
  std::map<EndpointId, std::int64_t> steps_;  ///< begun, by client
  double images_ = 0;

 private:
  double loss_ = 0, loss_images_ = 0;
};

}  // namespace convoy::numerics
