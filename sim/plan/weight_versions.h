// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// Of a run whose steps overlap (EndlessRun), which parameters the passes of a micro-batch read. Where a pass begins
/// between the last gradients of an update and the update (`weights: double_buffered`, docs/pipelines.md), all
/// micro-batches of an update read, on every device, the parameters of the last update but one. Otherwise each reads
/// those that are there when its first pass on the device begins.
/// @return by role and micro-batch: the number of updates after which they are read; empty maps in the other case
/// @pre plan.meaning
std::vector<std::map<std::int64_t, std::size_t>> doubled_versions(const Plan& plan,
                                                                  const TrainingGraph& graph);

}  // namespace convoy::plans
