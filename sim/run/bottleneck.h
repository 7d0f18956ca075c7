// SPDX-License-Identifier: MIT
#pragma once

#include "sim/replay/replay.h"
#include "sim/results/result.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// Of the busiest device, the most loaded port and the busiest host, the one that is busy for the largest
/// share of the step (ties: in this order). A port with messages under way whose bytes need less than half of
/// that time waits for latency (kind "latency"); a device that runs operations for less than half of its
/// compute time waits for its host to issue them (kind "issue"). If devices wait for images, their host's
/// input pipeline (kind "input") takes precedence over these, and a device whose memory does not hold the
/// plan takes precedence over everything.
/// @param input that of the plan; null if images are available when needed
Bottleneck find_bottleneck(const Machine& machine, const ReplayResult& replayed,
                           const InputFeed* input = nullptr);

}  // namespace convoy::runs
