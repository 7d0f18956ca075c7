// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/lowering/annotation.h"
#include "strategies/pipeline/pipeline_costs.h"

namespace convoy::inline strategies {

/// What a slot of a stage does in a step with flush (or a stretch of an endless run of so many
/// micro-batches).
/// @param slots_before of all stages before it
/// @param can_recompute the stage has a backward pass
std::vector<Pass> passes_of_slot(const PipelineShape& shape, const StageChoice& choice,
                                 std::uint32_t slots_before, std::uint32_t slot, std::int64_t micro_batches,
                                 bool can_recompute);

/// The annotation of a cut pipeline. Micro-batch m of a stage with n slots is the business of its slot m mod n.
///
/// With flush a plan is one step, ended by an update of all parameters; without, an EndlessRun.
/// Orders on a device, of its micro-batches:
///   naive        forward and backward of one after the other
///   gpipe        all forward, then all backward from the last one on (Huang et al., NeurIPS 2019, figure 2)
///   one_f_one_b  as many forward as in_flight says, then backward and forward in turn (PipeDream-flush:
///                Narayanan et al., ICML 2021, section 2.2; the schedule of Megatron-LM)
/// A pipeline of one stage is naive in any case: there is nothing to overlap. What becomes of these orders
/// stands in sim/lowering/staged_passes.h.
Annotation annotate_pipeline(const StrategyInput& input, const PipelineShape& shape,
                             const std::vector<StageChoice>& choices, Stages stages,
                             const GradientSync& sync);

}  // namespace convoy::strategies
