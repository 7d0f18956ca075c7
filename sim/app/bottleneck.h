// SPDX-License-Identifier: MIT
#pragma once

#include "sim/replay/replay.h"
#include "sim/results/result.h"
#include "topologies/machine.h"

namespace convoy {

/// The device, host or port that is busy for the largest share of the step (of equals: devices before ports
/// before hosts); a device whose memory does not hold the plan comes before them all.
Bottleneck find_bottleneck(const Machine& machine, const ReplayResult& replayed);

}  // namespace convoy
