// SPDX-License-Identifier: MIT
#pragma once

#include "sim/plan/plan.h"

namespace convoy {

/// A plan's own rules: indices in range, tasks wait for earlier ones only, an endpoint in one role and in one
/// group of a pattern, members of a role all devices or all hosts, compute tasks on stream 0, send/receive
/// patterns of one round, sizes finite and not negative, everyone who communicates in a role.
/// @throws std::logic_error: a strategy's mistake, never the user's.
void validate(const Plan& plan, const Machine& machine);

}  // namespace convoy
