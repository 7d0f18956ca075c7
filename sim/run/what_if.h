// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/machine.h"

namespace convoy::inline runs {

/// A machine other than the one described: what a counterfactual asks about.
struct WhatIf {
  double bandwidth = 1;     ///< of every link, times this
  double compute = 1;       ///< speed of every device, times this
  bool no_latency = false;  ///< of links and of collectives' starts
  double issue = 1;         ///< rate at which hosts issue operations, times this
};

/// Changes the machine, whose devices have been measured (anchors, profiles) as they are. Devices, hosts and
/// links keep their names and numbers.
void apply(const WhatIf& change, Machine& machine);

}  // namespace convoy::runs
