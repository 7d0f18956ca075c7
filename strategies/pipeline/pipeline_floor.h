// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "strategies/cost_table.h"
#include "strategies/pipeline/pipeline_options.h"

namespace convoy::inline strategies {

/// Below, F and B are the forward and backward time of a micro-batch.
///
/// A pipeline that runs empty before its update takes m micro-batches through S stages. Each of them goes
/// forward and back through all, so that no step is shorter than F + B; no device is idle in less than m (F +
/// B) / S. A stage can begin its first backward pass only when one micro-batch has been forward through all
/// stages and back to it, and the last of its m backward passes has still to go back to the first: with the
/// stage's backward pass b the step takes at least F + B + (m - 1) b, and some stage has b >= B / S. The same
/// of forward passes, from the end. Where stages take several devices each, some device of every stage still
/// has two micro-batches if there are more of them than a stage can have devices.
///
/// Stages that hold another strategy are such a pipeline, in which F and B are those of a device of a stage:
/// of its images (data_parallel), or of its part of every operation (hybrid). Where the number of stages is
/// chosen, the floor is the least over those that it may be.
std::optional<StepFloor> floor_of_pipeline(const PipelineOptions& options, const BatchSpec& batch,
                                           CostTable& table);

}  // namespace convoy::strategies
