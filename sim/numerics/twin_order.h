// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/replay.h"
#include "topologies/machine.h"

namespace convoy::inline numerics {

/// The beginning or the end of an endpoint's task.
struct TwinEvent {
  EndpointId endpoint;
  std::uint32_t role;
  TaskId task;
  bool begins;
};

/// Who sends to whom by a pattern.
struct PatternEnds {
  explicit PatternEnds(const Pattern& pattern, std::size_t endpoints);
  std::vector<std::vector<EndpointId>> senders;  ///< by receiver, in the pattern's order
  std::vector<EndpointId> receivers;             ///< in the order in which they first receive
  std::vector<std::uint32_t> group;              ///< by endpoint: index into Pattern::groups
};

/// A step's events in the order in which the replay had them, as far as the plan's dependencies, streams and
/// messages leave them open: where a replay lets two happen at one moment, these decide. A message can come
/// when it has been sent, and a collective is over when all members have begun it.
/// @throws std::runtime_error: tasks wait for each other
std::vector<TwinEvent> twin_order(const Plan& plan, const Machine& machine,
                                  const std::vector<PatternEnds>& ends, const ReplayResult& replayed);

}  // namespace convoy::numerics
