// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/pipeline/pipeline_costs.h"

namespace convoy::inline strategies {

/// Step of a cut pipeline, pass by pass: each device goes through its passes in their order
/// (PassOrder), each operation at the later of "issued by the host since the step's beginning", "the
/// one before it is done" and, with the first of a pass, "its message is there"; messages of one direction
/// leave one after the other, those of a stage's slots together; then come the sums of gradients, and the updates. For a
/// chain of layers, where no two messages share a link at a time and there is nothing to sum, it is what a replay of the
/// plan takes (tests/strategies/test_pipeline_schedule.cpp). What else is under way on a link it does not know, but no
/// step is shorter than least_schedule_s; sums of gradients of an output that several stages read are in the
/// stage of its layer. Of many micro-batches some hundreds are gone through; the others are taken to go on at the pace of
/// the last of these, as all are without flush, where the update follows the last gradients of each stage.
double schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages);

/// What schedule_s is not below, without going through any pass: PipelineCosts::busiest_link_s, and what the passes of a slot take
/// on a device that never waits.
double least_schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages);

/// How many micro-batches schedule_s goes through, counted twice where two walks have them in common.
std::int64_t walked_micro_batches(const PipelineShape& shape, const std::vector<StageChoice>& stages);

}  // namespace convoy::strategies
