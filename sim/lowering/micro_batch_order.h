// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs/issue_queue.h"

namespace convoy::inline lowering {

/// A step that one device runs for every micro-batch.
struct OrderedStep {
  /// A message to a step of another device, for the same micro-batch, which waits for it.
  struct Message {
    std::uint32_t device, step;
    double delay_s;  ///< from the end of this step to the message's arrival
  };
  QueuedTime time{};
  bool forward = true;
  /// It begins, and its messages are received, when everything that the device has sent has been delivered.
  bool after_sends = false;
  std::vector<Message> sends{};
};

struct ScheduledStep {
  std::uint32_t micro_batch, step;
};

/// The order in which each device runs the steps of all micro-batches; within a micro-batch the steps keep
/// their own order. This is list scheduling: the step that can begin first is scheduled next. Among several
/// such steps, backward steps come first, then steps of earlier micro-batches, then those of devices with
/// lower numbers. Since all orders come from one schedule, in which senders wait as they do in the plan,
/// devices that follow them cannot block each other.
/// @param steps by device
/// @throws std::logic_error if there is no such schedule: two devices each wait for the delivery of what they
/// have sent before they receive what the other has sent
std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches);

}  // namespace convoy::lowering
