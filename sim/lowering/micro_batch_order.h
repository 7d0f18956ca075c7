// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/issue_queue.h"

namespace convoy::inline lowering {

/// A step that one device does for every micro-batch.
struct OrderedStep {
  struct Source {
    std::uint32_t device, step;
    double delay_s;  ///< from the end of that step to the message's arrival
  };
  QueuedTime time;
  bool forward;
  std::vector<Source> waits_for;  ///< steps of other devices, for the same micro-batch
};

struct ScheduledStep {
  std::uint32_t micro_batch, step;
};

/// The order in which each device goes through the steps of all micro-batches; within a micro-batch it keeps
/// the steps' own order. List scheduling: again and again the step that can begin first; of several, backward
/// ones first, then those of earlier micro-batches, then those of lower devices. Since the orders come from
/// one schedule of all devices, following them cannot block.
/// @param steps by device
std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches);

}  // namespace convoy::lowering
