// SPDX-License-Identifier: MIT
#pragma once

#include "sim/replay/replay.h"
#include "sim/results/result.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// Of the busiest device, the most loaded port and the busiest host, that which is busy for the largest share
/// of the step (of equals in this order). A port that has messages under way, but whose bytes need less than
/// half of that time, waits for latency (kind "latency"); a device that runs operations for less than half of
/// it waits for its host to issue them (kind "issue"). Where devices wait for images, their host's input
/// pipeline (kind "input") comes before these, and a device whose memory does not hold the plan before all.
/// @param input of the plan; null where images are there when they are needed
Bottleneck find_bottleneck(const Machine& machine, const ReplayResult& replayed,
                           const InputFeed* input = nullptr);

}  // namespace convoy::runs
