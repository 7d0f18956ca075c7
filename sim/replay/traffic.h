// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/replay.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Payload that a host sends to and receives from other hosts, in bytes per second, from a time on.
struct TrafficPoint {
  double time_s = 0, sent_Bps = 0, received_Bps = 0;
  bool operator==(const TrafficPoint&) const = default;
};

/// Bandwidth in use at the network interfaces of hosts over a replayed step. Every communication counts with
/// its mean rate from the beginning to the end of its sender's task, so that the integral of the curve over
/// the step is what the host sends and receives; replays do not record how the rate varies while a message is
/// under way.
class Traffic {
 public:
  Traffic(const ReplayResult& result, const Plan& plan, const Machine& machine);
  /// Ordered by time; the last point has no traffic. Empty for a host that exchanges nothing with others, and
  /// for plans with a service, whose servers answer by a rule and not by tasks that have times.
  std::vector<TrafficPoint> of_host(std::uint32_t host) const;

 private:
  struct Message {
    EndpointId from;
    double fraction;  ///< of Communication::bytes, all repetitions
    bool leaves;      ///< the host; else it arrives
  };
  std::vector<Message> messages_of(const Pattern& pattern, std::uint32_t host) const;
  /// The times of the task in which the endpoint sends `comm`; nothing if there is none.
  const TaskTimes* sending(EndpointId from, CommId comm) const;

  const ReplayResult& result_;
  const Plan& plan_;
  const Machine& machine_;
  std::vector<std::vector<std::pair<CommId, TaskTimes>>> sends_;  ///< by timeline, ordered by communication
};

}  // namespace convoy::replays
