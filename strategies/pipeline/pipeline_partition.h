// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline/stage_prices.h"

namespace convoy::inline strategies {

enum class StageCut : std::uint8_t { even, balanced, optimal };
inline const std::vector<std::string> partition_method_names{"even", "balanced", "optimal"};

/// A pipeline that is cut.
struct CutPipeline {
  std::vector<StageChoice> stages;
  StageCut begun_from;  ///< the method whose cut it is, or comes from by moving where stages begin
};

/// Cuts a pipeline into its shape's number of stages.
///
/// even: as many units in each, the first stages one more where they do not divide. balanced: the smallest
/// slowest stage, by computing and being issued to alone; among those the fewest bytes. Both take
/// PipelineShape::stage_slots, or one slot a stage.
/// optimal: by the estimate of the whole schedule (schedule_s), the best of least_step_partition, of even and
/// balanced where these can be, and of what comes from it by moving where one stage begins for as long as
/// that helps; of those that fit in memory, where any does. Empty where no number of slots that a stage may
/// take adds up to all of them (slots_allowed).
/// @pre stages <= units, stages <= slots; stages == slots for even and balanced without stage_slots
CutPipeline partition_pipeline(StageCut method, const PipelineCosts& costs);

/// The smallest PipelineCosts::step_s among all cuts, and all ways to give the slots in order to the stages,
/// that fit in memory (of all, where none fits). Exact: dynamic programming over (units, slots) for the
/// smallest sum under a bound on the slowest interval, and a search over the bound that leaves out only what
/// cannot be better. Without flush the largest interval counts alone. After the partitioner of PipeDream
/// (Narayanan et al., SOSP 2019, section 3.1), with the whole step instead of the slowest stage alone.
std::vector<StageChoice> least_step_partition(StagePrices& prices);

}  // namespace convoy::strategies
