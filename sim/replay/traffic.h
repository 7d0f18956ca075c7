// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/replay.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Payload that a host sends to other hosts and receives from them, in bytes a second, from a time on.
struct TrafficPoint {
  double time_s = 0, sent_Bps = 0, received_Bps = 0;
  bool operator==(const TrafficPoint&) const = default;
};

/// Bandwidth in use at hosts' network interfaces over a replayed step. Every communication counts with its
/// mean rate from the beginning to the end of its sender's task, so that the curve's integral over the step
/// is what the host sends and receives; how the rate varies while a message is under way is not kept by
/// replays.
class Traffic {
 public:
  Traffic(const ReplayResult& result, const Plan& plan, const Machine& machine);
  /// Ordered by time, the last point without traffic. Empty for a host that exchanges nothing with others,
  /// and for plans with a service: its servers answer by a rule and not by tasks that have times.
  std::vector<TrafficPoint> of_host(std::uint32_t host) const;

 private:
  struct Message {
    EndpointId from;
    double fraction;  ///< of Communication::bytes, all repetitions
    bool leaves;      ///< the host; else it arrives
  };
  std::vector<Message> messages_of(const Pattern& pattern, std::uint32_t host) const;
  /// Of the task in which the endpoint sends `comm`; nothing if it has none.
  const TaskTimes* sending(EndpointId from, CommId comm) const;

  const ReplayResult& result_;
  const Plan& plan_;
  const Machine& machine_;
  std::vector<std::vector<std::pair<CommId, TaskTimes>>> sends_;  ///< by timeline, ordered by communication
};

}  // namespace convoy::replays
