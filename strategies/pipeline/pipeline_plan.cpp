// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/lowering/staged_passes.h"

namespace convoy::inline strategies {
namespace {

/// How much of an endless run is simulated, in micro-batches. A pipeline of S slots is full after S of them;
/// stages that take turns, and stages that wait for what they may have under way, repeat themselves after as
/// many as they are or hold; messages that pile up on links need more. The numbers are chosen, not derived:
/// with them the mean of a steady stretch agrees with the closed forms of
/// tests/laws/test_endless_pipelines.cpp.
struct Stretch {
  std::int64_t steady;  ///< whole steps of which the first stage has something to do to their end
  std::int64_t all;     ///< and as many as may be under way then

  static constexpr std::int64_t rounds_to_fill = 4;        ///< of all slots, before a stretch is steady
  static constexpr std::int64_t rounds_of_turns = 4;       ///< of stages that take turns, in the mean
  static constexpr std::int64_t least_micro_batches = 96;  ///< in the mean, however short the turns are
  static constexpr std::int64_t longest_turns = 64;  ///< of longer ones the mean is over a part of a round
  /// Steps in the mean: as many as these micro-batches make, but not fewer or more than the limits.
  static constexpr std::int64_t micro_batches_of_steps = 256, fewest_steps = 12, most_steps = 48;

  Stretch(const PipelineShape& shape, const std::vector<StageChoice>& choices) {
    const std::int64_t steps =
        std::clamp(micro_batches_of_steps / shape.micro_batches, fewest_steps, most_steps);
    const auto slots = static_cast<std::int64_t>(shape.slots.size());
    std::int64_t turns = 1;
    for (const StageChoice& choice : choices)
      turns = std::min<std::int64_t>(std::lcm<std::int64_t>(turns, choice.slots), longest_turns);
    const auto whole = [&](std::int64_t micro_batches) {
      return (micro_batches + shape.micro_batches - 1) / shape.micro_batches * shape.micro_batches;
    };
    steady = std::max(whole(rounds_to_fill * slots + std::max(least_micro_batches, rounds_of_turns * turns)),
                      steps * shape.micro_batches);
    all = steady + whole(in_flight(shape, 0, choices.front().slots) * choices.front().slots);
  }
};

/// What 1F1B and naive leave out: passes alternate from the first backward pass of each slot to its last forward
/// pass. With ZeRO's stages 2 and 3 updates wait for something of every micro-batch.
std::optional<RepeatedPasses> repeated_passes_of(const StrategyInput& input, const PipelineShape& shape,
                                                 const std::vector<StageChoice>& choices) {
  constexpr std::int64_t longest_turns = 64;
  if (shape.endless() || input.meaning || shape.sync.zero >= 2 ||
      (shape.schedule == PipelineSchedule::gpipe && shape.stages > 1))
    return std::nullopt;
  std::int64_t turns = 1, around = 0;
  std::uint32_t before = 0;
  for (const StageChoice& choice : choices) {
    turns = std::lcm<std::int64_t>(turns, choice.slots);
    if (turns > longest_turns) return std::nullopt;
    around = std::max(around, (in_flight(shape, before, choice.slots) + 1) * choice.slots);
    before += choice.slots;
  }
  return repeated_passes(shape.micro_batches, turns, static_cast<std::int64_t>(shape.slots.size()), around);
}

}  // namespace

std::vector<Pass> passes_of_slot(const PipelineShape& shape, const StageChoice& choice,
                                 std::uint32_t slots_before, std::uint32_t slot, std::int64_t micro_batches,
                                 bool can_recompute) {
  std::vector<Pass> passes;
  for (PassOrder order(shape, slots_before, choice.slots, slot, micro_batches); order.passed() < order.size();
       order.pass()) {
    const MicroBatchPass pass = order.next();
    passes.push_back({pass.backward, pass.micro_batch, shape.images, {}});
  }
  const std::int64_t share = share_of_update(shape, choice.slots);
  std::int64_t backward = 0;
  for (Pass& pass : passes) {
    if (micro_batches > 1) pass.suffix = fmt::format(" #{}", pass.micro_batch);
    pass.recomputes = can_recompute && recomputes(shape, pass.micro_batch, micro_batches);
    if (!pass.backward) continue;
    ++backward;
    // The last updates, for which some slots have no micro-batch any more, are left out by all.
    pass.completes = shape.endless() && backward % share == 0 && backward * choice.slots <= micro_batches;
  }
  if (!shape.endless()) passes.back().completes = true;
  return passes;
}

Annotation annotate_pipeline(const StrategyInput& input, const PipelineShape& shape,
                             const std::vector<StageChoice>& choices, Stages stages,
                             const GradientSync& sync) {
  StagedPasses passes;
  passes.meaning = input.meaning;
  passes.images = shape.images * static_cast<double>(shape.micro_batches) *
                  static_cast<double>(shape.slots.front().size());
  std::int64_t micro_batches = shape.micro_batches;
  if (shape.endless()) {
    const Stretch stretch(shape, choices);
    passes.endless = {shape.micro_batches, stretch.steady, stretch.all,
                      shape.weights == Weights::double_buffered && shape.stages > 1};
    micro_batches = stretch.all;
  }
  passes.repeats = repeated_passes_of(input, shape, choices);
  if (passes.repeats)
    micro_batches -= passes.repeats->micro_batches * static_cast<std::int64_t>(passes.repeats->left_out);
  std::uint32_t before = 0;
  for (std::uint32_t s = 0; s < choices.size(); ++s) {
    const std::uint32_t slots = choices[s].slots;
    StagedLayers& stage = passes.stages.emplace_back();
    stage.weight_versions = static_cast<std::uint32_t>(weight_versions(shape, before, slots));
    stage.share_of_update = share_of_update(shape, slots);
    stage.in_flight = in_flight(shape, before, slots);
    for (std::uint32_t k = 0; k < slots; ++k)
      stage.slots.push_back(
          {fmt::format("stage {}{}", s, slots > 1 ? fmt::format(" replica {}", k) : ""),
           shape.slots[before + k],
           passes_of_slot(shape, choices[s], before, k, micro_batches, !stages.stages[s].backward.empty()),
           passes.repeats ? static_cast<std::size_t>(stage.in_flight) + 1 : 0});
    before += slots;
  }
  return {WholeLayers{std::move(passes), std::move(stages)}, sync};
}

}  // namespace convoy::strategies
