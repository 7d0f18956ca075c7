// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_shape.h"

#include <algorithm>

namespace convoy::inline strategies {

bool slots_allowed(const PipelineShape& shape, std::uint32_t slots) {
  if (!shape.endless()) return slots <= shape.micro_batches;
  return shape.micro_batches == 1 || shape.micro_batches % slots == 0;
}

std::int64_t in_flight(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots) {
  const std::int64_t own = (shape.micro_batches + slots - 1) / slots;
  const std::int64_t rest = static_cast<std::int64_t>(shape.slots.size()) - slots_before;
  const std::int64_t by_turns = (rest + slots - 1) / slots;
  if (shape.endless()) return by_turns;
  switch (shape.schedule) {
    case PipelineSchedule::naive:
      return 1;
    case PipelineSchedule::gpipe:
      return shape.stages == 1 ? 1 : own;
    case PipelineSchedule::one_f_one_b:
      break;
  }
  return std::min(own, by_turns);
}

bool recomputes(const PipelineShape& shape, std::int64_t micro_batch, std::int64_t micro_batches) {
  return shape.recompute == Recompute::always ||
         (shape.recompute == Recompute::except_last && micro_batch + 1 < micro_batches);
}

bool recomputes(const PipelineShape& shape) { return recomputes(shape, 0, shape.micro_batches); }

PassOrder::PassOrder(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots,
                     std::uint32_t slot, std::int64_t micro_batches)
    : slots_(slots),
      slot_(slot),
      own_(own(micro_batches)),
      flying_(in_flight(shape, slots_before, slots)),
      last_first_(shape.schedule == PipelineSchedule::gpipe && shape.stages > 1) {}

/// Up to a forward pass that there is not with fewer.
std::int64_t PassOrder::in_common_with(std::int64_t micro_batches) const {
  const std::int64_t fewer = own(micro_batches);
  return std::min(fewer + std::max(std::int64_t{0}, fewer + 1 - flying_), 2 * fewer - 1);
}

PassOrder PassOrder::with(std::int64_t micro_batches) const {
  PassOrder order = *this;
  order.own_ = own(micro_batches);
  return order;
}

std::int64_t share_of_update(const PipelineShape& shape, std::uint32_t slots) {
  return std::max<std::int64_t>(1, shape.micro_batches / slots);
}

std::int64_t weight_versions(const PipelineShape& shape, std::uint32_t slots_before, std::uint32_t slots) {
  switch (shape.weights) {
    case Weights::flush:
      return 1;
    case Weights::double_buffered:
      return shape.stages == 1 ? 1 : 2;
    case Weights::stash:
      break;
  }
  const std::int64_t share = share_of_update(shape, slots);
  return 1 + (in_flight(shape, slots_before, slots) - 1 + share - 1) / share;
}

}  // namespace convoy::strategies
