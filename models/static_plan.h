// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"

namespace convoy::inline models {

/// Bytes an image of a memory plan made before training, as NNVM's for MXNet (nnvm/src/pass/plan_memory.cc,
/// GraphAllocator with match_range 16): operations in order, each buffer in the smallest free block that is
/// large enough and at most 16 times as large, else in the largest free one of at least a 16th, which grows,
/// else in a new one. Never less than the most that is live at a time, which live_bytes() gives.
double planned_bytes(const TrainingGraph& graph);

/// Most bytes an image of buffers that are there at a time.
double live_bytes(const TrainingGraph& graph);

}  // namespace convoy::models
