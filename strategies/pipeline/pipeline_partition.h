// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline/stage_prices.h"

namespace convoy::inline strategies {

enum class StageCut : std::uint8_t { even, balanced, optimal };
inline const std::vector<std::string> partition_method_names{"even", "balanced", "optimal"};

/// Cuts a pipeline into its shape's number of stages.
///
/// even: as many units in each, the first stages one more where they do not divide. balanced: the smallest
/// slowest stage, by computing alone; among those the fewest bytes. Both take PipelineShape::stage_slots, or
/// one slot a stage.
/// optimal: the smallest PipelineCosts::step_s among all cuts, and all ways to give the slots in order to the
/// stages, that fit in memory (of all, where none fits). Exact: dynamic programming over (units, slots) for
/// the smallest sum under a bound on the slowest interval, and a search over the bound that leaves out only
/// what cannot be better. Without flush the largest interval counts alone. After the partitioner of PipeDream
/// (Narayanan et al., SOSP 2019, section 3.1), with the whole step instead of the slowest stage alone. Empty
/// where no number of slots that a stage may take adds up to all of them (slots_allowed).
/// @pre stages <= units, stages <= slots; stages == slots for even and balanced without stage_slots
std::vector<StageChoice> partition_pipeline(StageCut method, const PipelineCosts& costs);

/// The same, optimal, with the prices of stages kept.
std::vector<StageChoice> optimal_partition(StagePrices& prices);

}  // namespace convoy::strategies
