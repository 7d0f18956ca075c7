// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/classroom.h"
#include "sim/replay/replay.h"

namespace convoy::inline numerics {

/// Workers that push gradients to servers, each at its own pace, on real values: in the order in which a
/// replay had the events.
template <class Real>
class ServiceTwin {
 public:
  ServiceTwin(const Lesson& lesson, const Plan& plan, const Machine& machine, double learning_rate);

  /// @throws MissingValue
  void happen(const ServiceLog::Event& event);

  /// Images from which parameters have been updated; where only some of them have, their share of an image.
  double images() const { return images_; }
  /// Mean loss of the images of steps that have begun since this was asked last; 0 of none.
  double take_loss();
  const Classroom<Real>& classroom() const { return classroom_; }

 private:
  /// What a server has added up of an exchange since its last update.
  struct Added {
    std::int64_t pushes = 0;
    double images = 0;
  };

  void begin(EndpointId client);
  void serve(const ServiceLog::Event& event);
  std::uint32_t bucket_of(std::uint32_t exchange) const;

  const Lesson& lesson_;
  const Plan& plan_;
  double learning_rate_;
  Classroom<Real> classroom_;
  std::map<EndpointId, double> images_of_;                                    ///< of a step, by client
  std::map<EndpointId, std::int64_t> steps_;                                  ///< begun, by client
  std::map<std::pair<EndpointId, std::uint32_t>, std::vector<Real>> pushed_;  ///< by client and exchange
  std::map<std::pair<EndpointId, std::uint32_t>, Added> added_;               ///< by server and exchange
  double images_ = 0, loss_ = 0, loss_images_ = 0, all_elements_ = 0;
};

}  // namespace convoy::numerics
