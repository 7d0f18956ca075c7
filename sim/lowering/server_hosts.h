// SPDX-License-Identifier: MIT
#pragma once

#include "sim/lowering/server_exchange.h"
#include "sim/lowering/server_messages.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Adds to a plan the work of hosts that run servers or add up the gradients of their devices, with one role
/// for all hosts that do the same.
void add_server_hosts(const Machine& machine, const ServerExchange& exchange, const ServerMessages& messages,
                      Plan& plan);

}  // namespace convoy::lowering
