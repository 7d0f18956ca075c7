// SPDX-License-Identifier: MIT
#pragma once

#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// A plan's own rules: indices in range, tasks wait for earlier ones only, an endpoint in one role and in one
/// group of a pattern, members of a role all devices or all hosts, compute tasks on stream 0, send/receive
/// patterns of one round, a communication used once by a member (it may send and receive in it), sizes finite
/// and not negative, memory deltas more than nothing, everyone who communicates in a role, periods of repeated
/// tasks alike.
/// @throws std::logic_error: a strategy's mistake, never the user's.
void validate(const Plan& plan, const Machine& machine);

}  // namespace convoy::plans
