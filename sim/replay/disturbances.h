// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline replays {

/// What happens to the machine during a replay, apart from the plan. Times count from its beginning.
struct Disturbances {
  /// From `at_s` on, a link has this bandwidth; with 0, everything that crosses it stands still.
  struct LinkChange {
    double at_s;
    LinkId link;
    double bandwidth_Bps;
  };
  /// From `at_s` to `until_s`, a device or host computes and issues nothing; what it was computing continues
  /// afterwards. Its messages continue. Infinite: for the rest of the replay.
  struct Stop {
    double at_s;
    EndpointId endpoint;
    double until_s = std::numeric_limits<double>::infinity();
  };
  /// Bytes of somebody else from one endpoint to another, which share links with those of the plan.
  struct Transfer {
    double at_s;
    EndpointId from, to;
    double bytes;                                                ///< > 0
    double limit_Bps = std::numeric_limits<double>::infinity();  ///< it is never faster than this
  };

  std::vector<LinkChange> link_changes;
  std::vector<Stop> stops;
  std::vector<Transfer> transfers;

  bool empty() const { return link_changes.empty() && stops.empty() && transfers.empty(); }
};

/// The end of a computation that takes `duration_s` of an endpoint's time and begins at `start_s`.
/// @param stops those of the endpoint, ordered by at_s
double end_of_computation_s(double start_s, double duration_s, const std::vector<Disturbances::Stop>& stops);

/// For how much of the time up to `now_s` an endpoint stood still. @param stops its own, ordered by at_s
double stopped_before_s(double now_s, const std::vector<Disturbances::Stop>& stops);

}  // namespace convoy::replays
