// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "topologies/machine.h"

namespace convoy::inline runs {

/// A machine that differs from the one described: the subject of a counterfactual.
struct WhatIf {
  double bandwidth = 1;     ///< factor on the bandwidth of every link
  double compute = 1;       ///< factor on the speed of every device
  bool no_latency = false;  ///< of links and of collectives' starts
  double issue = 1;         ///< factor on the rate at which hosts issue operations
  double messages = 1;      ///< factor on the time of every message, whatever it takes
  double network = 1;       ///< factor on the bandwidth of links between hosts
  std::vector<EndpointId> only = {};  ///< these devices, in ascending order; empty: all
};

/// Changes the machine. Its devices have been measured (anchors, profiles) as they are. Devices, hosts and
/// links keep their names and numbers, those that `only` leaves their names (chosen_devices).
void apply(const WhatIf& change, Machine& machine);

}  // namespace convoy::runs
