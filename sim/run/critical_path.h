// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <vector>

#include "sim/replay/replay.h"

namespace convoy::inline runs {

/// By timeline of the replay: its tasks on the step's critical path. The path is followed backwards from the
/// task that ends last: to what a task waited for that ended last, on its own endpoint (tasks that it is
/// after, the one before it on its stream), of a collective on that of the rank that was ready last, of a
/// receive to the send that was delivered last. Equal endpoints are equally critical. Empty for
/// asynchronous runs and pipelines that are never flushed: their steps have no end for which all wait.
std::vector<std::set<TaskId>> critical_path(const Plan& plan, const ReplayResult& replayed);

}  // namespace convoy::runs
