// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/replay/disturbances.h"
#include "sim/replay/engine.h"
#include "sim/replay/fold.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Makes the changes of links and the transfers of others happen at their times. Whatever is left when the
/// plan is done does not count.
void disturb_links(const Disturbances& disturbances, const Machine& machine, const Folding& folding,
                   Engine& engine);

/// The stops of endpoint classes.
class Stops {
 public:
  Stops(const Disturbances& disturbances, const Folding& folding);
  /// How long a computation takes that begins now and would take `duration_s` without stops.
  double with_stops_s(std::uint32_t endpoint_class, double now_s, double duration_s) const;

  /// For how long a class has been stopped up to now; its host issued nothing during that time either.
  double before_s(std::uint32_t endpoint_class, double now_s) const;

 private:
  std::map<std::uint32_t, std::vector<Disturbances::Stop>> by_class_;  ///< in time order
};

}  // namespace convoy::replays
