// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/own_pace_twin.h"

namespace convoy::inline numerics {

/// Workers that push gradients to servers, each at its own pace, on real values: in the order in which a
/// replay had the events.
template <class Real>
class ServiceTwin : public OwnPaceTwin<Real> {
 public:
  ServiceTwin(const Lesson& lesson, const Plan& plan, const Machine& machine, double learning_rate);

  /// @throws MissingValue
  void happen(const ServiceLog::Event& event);

 private:
  /// What a server has added up of an exchange since its last update.
  struct Added {
    std::int64_t pushes = 0;
    double images = 0;
  };

  void begin(EndpointId client);
  void serve(const ServiceLog::Event& event);

  using Base = OwnPaceTwin<Real>;
  using Base::bucket_of, Base::classroom_, Base::images_, Base::images_of_, Base::learning_rate_, Base::plan_;
  std::map<std::pair<EndpointId, std::uint32_t>, std::vector<Real>> pushed_;  ///< by client and exchange
  std::map<std::pair<EndpointId, std::uint32_t>, Added> added_;               ///< by server and exchange
  double all_elements_ = 0;
};

}  // namespace convoy::numerics
