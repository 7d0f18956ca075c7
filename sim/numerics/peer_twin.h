// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/classroom.h"
#include "sim/replay/replay.h"

namespace convoy::inline numerics {

/// Devices that average parameters with one another, each at its own pace (ParameterAverages), on real
/// values: in the order in which a replay had the events.
template <class Real>
class PeerTwin {
 public:
  PeerTwin(const Lesson& lesson, const Plan& plan, const Machine& machine, double learning_rate);

  /// @throws MissingValue
  void happen(const ServiceLog::Event& event);

  /// Images whose gradients have updated parameters.
  double images() const { return images_; }
  /// Mean loss of the images of steps that have begun since this was asked last; 0 of none.
  double take_loss();
  const Classroom<Real>& classroom() const { return classroom_; }

 private:
  /// What a device has sent of a bucket and what has come for it.
  struct Exchanged {
    std::vector<Real> sent, came;
  };

  void begin(EndpointId device);
  void finish(EndpointId device);
  void meet(const ServiceLog::Event& event);
  void run(EndpointId device, bool updates);
  std::uint32_t bucket_of(std::uint32_t exchange) const;

  const Lesson& lesson_;
  const Plan& plan_;
  double learning_rate_;
  Classroom<Real> classroom_;
  std::map<EndpointId, double> images_of_;        ///< of a step
  std::map<EndpointId, std::int64_t> steps_;      ///< begun
  std::map<EndpointId, std::uint64_t> happened_;  ///< tasks of the step under way
  std::map<std::pair<EndpointId, std::uint32_t>, Exchanged> exchanged_;
  double images_ = 0, loss_ = 0, loss_images_ = 0;
};

}  // namespace convoy::numerics
