// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/own_pace_twin.h"

namespace convoy::inline numerics {

/// Devices that average parameters with one another, each at its own pace (ParameterAverages), on real
/// values: in the order in which a replay had the events.
template <class Real>
class PeerTwin : public OwnPaceTwin<Real> {
 public:
  using OwnPaceTwin<Real>::OwnPaceTwin;

  /// @throws MissingValue
  void happen(const ServiceLog::Event& event);

 private:
  /// What a device has sent of a bucket and what has come for it.
  struct Exchanged {
    std::vector<Real> sent, came;
  };

  void begin(EndpointId device);
  void finish(EndpointId device);
  void meet(const ServiceLog::Event& event);
  void run_all(EndpointId device, bool updates);

  using Base = OwnPaceTwin<Real>;
  using Base::bucket_of, Base::classroom_, Base::images_, Base::images_of_, Base::lesson_, Base::plan_,
      Base::steps_;
  std::map<EndpointId, std::uint64_t> happened_;  ///< tasks of the step under way
  std::map<std::pair<EndpointId, std::uint32_t>, Exchanged> exchanged_;
};

}  // namespace convoy::numerics
