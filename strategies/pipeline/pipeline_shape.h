// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline strategies {

enum class PipelineSchedule : std::uint8_t { naive, gpipe, one_f_one_b };
enum class Recompute : std::uint8_t { never, always, except_last };

/// Which weights a micro-batch meets.
///   flush            all of a step the same: the pipeline runs empty before the update
///   stash            forward the newest there are, backward those of its forward: a version is kept for
///                    every update that happens between (PipeDream: Narayanan et al., SOSP 2019, section 3.3)
///   double_buffered  all of an update's micro-batches, in every stage, those of the last update but one: two
///                    versions (PipeDream-2BW: Narayanan et al., ICML 2021, section 3.1)
/// The last two never flush: updates go on while the pipeline is full.
enum class Weights : std::uint8_t { flush, stash, double_buffered };

/// A pipeline before it is cut. A slot is what one stage of a plain pipeline runs on: a device, or with
/// `replicas` one of each pipeline. A stage that takes several slots gives its micro-batches to them in turn
/// (PipeDream's replicated stages).
struct PipelineShape {
  std::vector<std::vector<EndpointId>> slots;
  std::uint32_t stages = 1;
  std::int64_t micro_batches = 1;  ///< of a pipeline, for one update
  double images = 1;               ///< of a micro-batch
  PipelineSchedule schedule = PipelineSchedule::naive;
  Recompute recompute = Recompute::never;
  Weights weights = Weights::flush;
  std::vector<std::uint32_t> stage_slots{};  ///< of each stage, where given; empty: to be chosen
  GradientSync sync = summed_after_backward();  ///< of a stage's replicas

  bool endless() const { return weights != Weights::flush; }
};

/// A stage of a cut pipeline: units from first_unit to the next stage's, on the next `slots` slots.
struct StageChoice {
  std::uint32_t first_unit, slots;
  auto operator<=>(const StageChoice&) const = default;
};

/// Whether a stage may take so many slots. With a flush each must have a micro-batch; without, all must have
/// equally many between two updates, or with one micro-batch an update one each.
bool slots_allowed(const PipelineShape& shape, std::uint32_t slots);

/// Micro-batches whose activations a stage holds at once: all of its own (GPipe), one (naive), or one for
/// every slot from it to the pipeline's end, shared among its own slots (1F1B; Narayanan et al., SOSP 2019,
/// section 3.2, NUM_OPT_ACTIVE_MINIBATCHES).
std::int64_t in_flight(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots);

/// Whether the stages' backward passes run their forward pass again, but for that of the last micro-batch
/// where that is spared.
bool recomputes(const PipelineShape& shape);
bool recomputes(const PipelineShape& shape, std::int64_t micro_batch, std::int64_t micro_batches);

/// A pass of a micro-batch through a stage.
struct MicroBatchPass {
  bool backward;
  std::int64_t micro_batch;
  bool operator==(const MicroBatchPass&) const = default;
};
/// The passes of a stage's slot, one after the other in its order (pipeline_plan.h has the orders).
class PassOrder {
 public:
  /// @param slots of the stage  @param slot of these  @param micro_batches in all
  PassOrder(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots, std::uint32_t slot,
            std::int64_t micro_batches);

  std::int64_t size() const { return 2 * own_; }
  std::int64_t passed() const { return forward_ + backward_; }
  /// @pre passed() < size()
  MicroBatchPass next() const {
    if (!is_forward_next()) return {true, micro_batch(last_first_ ? own_ - 1 - backward_ : backward_)};
    return {false, micro_batch(forward_)};
  }
  void pass() { ++(is_forward_next() ? forward_ : backward_); }

  /// How many passes come first with fewer micro-batches too, without the last of these: that may differ though it is the
  /// same one (Recompute::except_last). @pre the slot has fewer of them then
  std::int64_t in_common_with(std::int64_t micro_batches) const;
  /// The same place in the order of fewer micro-batches. @pre passed() <= in_common_with(micro_batches)
  PassOrder with(std::int64_t micro_batches) const;

 private:
  std::int64_t micro_batch(std::int64_t turn) const { return slot_ + turn * slots_; }
  std::int64_t own(std::int64_t micro_batches) const {
    return micro_batches > slot_ ? (micro_batches - slot_ + slots_ - 1) / slots_ : 0;
  }
  bool is_forward_next() const { return forward_ < std::min(backward_ + flying_, own_); }

  std::int64_t slots_, slot_;
  std::int64_t own_;                         ///< micro-batches of the slot
  std::int64_t flying_;                      ///< forward passes ahead of the first backward pass
  bool last_first_;                          ///< backward passes begin with the last micro-batch
  std::int64_t forward_ = 0, backward_ = 0;  ///< passes so far
};

/// Without flush: micro-batches that each of a stage's slots adds up for one update.
/// @pre slots_allowed
std::int64_t share_of_update(const PipelineShape& shape, std::uint32_t slots);

/// Versions of its weights that a stage keeps: the newest, and one for every update that may happen while a
/// micro-batch is under way.
std::int64_t weight_versions(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots);

}  // namespace convoy::strategies
