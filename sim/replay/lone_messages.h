// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/replay/executor.h"

namespace convoy::inline replays {

/// By pattern: whether every message of its collectives, whose ranks proceed one by one, has its links to itself from its
/// beginning to its end, so that it takes its latency and then its bytes over the narrowest of them.
///
/// This is so where each of its links has one endpoint at which every flow that crosses the link begins or ends, where that
/// endpoint has at most one flow on it in a round, and where all of its communications over the link are collectives of one of
/// its streams. They then follow one another, and so do their steps: a message is under way only between the times at which
/// the endpoint begins and ends a step.
std::vector<bool> has_lone_messages(const FoldedPlan& folded);

}  // namespace convoy::replays
