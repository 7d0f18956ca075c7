// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/issue_queue.h"

namespace convoy::inline lowering {

/// A step that one device does for every micro-batch.
struct OrderedStep {
  /// A message to a step of another device, for the same micro-batch, which waits for it.
  struct Message {
    std::uint32_t device, step;
    double delay_s;  ///< from the end of this step to the message's arrival
  };
  QueuedTime time{};
  bool forward = true;
  /// All that the device has sent is delivered before it begins, and before it takes the messages for it.
  bool after_sends = false;
  std::vector<Message> sends{};
};

struct ScheduledStep {
  std::uint32_t micro_batch, step;
};

/// The order in which each device goes through the steps of all micro-batches; within a micro-batch it keeps
/// the steps' own order. List scheduling: again and again the step that can begin first; of several, backward
/// ones first, then those of earlier micro-batches, then those of lower devices. Since the orders come from
/// one schedule of all devices, in which senders wait as they do in the plan, following them cannot block.
/// @param steps by device
/// @throws std::logic_error where there is no such schedule: two devices that each wait for what they have sent
/// before they take what the other has
std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches);

}  // namespace convoy::lowering
