// SPDX-License-Identifier: MIT
#include "sim/lowering/staged_passes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace convoy::inline lowering {

std::optional<RepeatedPasses> repeated_passes(std::int64_t micro_batches, std::int64_t period,
                                              std::int64_t slots, std::int64_t around) {
  // A pipeline is full after as many micro-batches as it has slots, and its slots are up to as many apart.
  constexpr std::int64_t rounds = 3, more = 16, fewest_periods = 12, least_saving = 4, fewest = 256;
  const std::int64_t listed = std::max(fewest_periods, (rounds * slots + more + period - 1) / period);
  const std::int64_t left_out = (micro_batches - around) / period - listed;
  if (micro_batches < fewest || left_out <= 0 ||
      micro_batches < least_saving * (micro_batches - left_out * period))
    return std::nullopt;
  constexpr std::int64_t made = 2;  // the others are like the second
  return RepeatedPasses{period, made, static_cast<std::uint64_t>(left_out + listed - made),
                        static_cast<std::uint32_t>(listed - made)};
}

void begin_meaning(StagedPasses& passes, const Machine& machine, Plan& plan) {
  plan.meaning = std::make_shared<Meaning>();
  plan.meaning->lanes.assign(machine.endpoint_count(), 0);
  for (StagedLayers& stage : passes.stages) {
    std::map<std::pair<std::int64_t, std::size_t>, double> first;  // by micro-batch and slot
    for (std::size_t k = 0; k < stage.slots.size(); ++k) {
      const StageSlot& slot = stage.slots[k];
      for (std::uint32_t lane = 0; lane < slot.devices.size(); ++lane)
        plan.meaning->lanes[slot.devices[lane]] = lane;
      for (const Pass& pass : slot.passes)
        first[{pass.micro_batch, k}] = pass.images * static_cast<double>(slot.devices.size());
    }
    double before = 0;
    for (auto& [of, images] : first) before += std::exchange(images, before);
    for (std::size_t k = 0; k < stage.slots.size(); ++k)
      for (Pass& pass : stage.slots[k].passes) pass.first_image = first[{pass.micro_batch, k}];
  }
}

}  // namespace convoy::lowering
