// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/server_messages.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// The rule by which servers answer, and the times at which workers begin, for a plan that has its roles and
/// communications, and whose workers do not all wait for each other.
///
/// Workers of `async` begin at random moments of the time that a step takes: up to 64 workers independently,
/// more of them in 64 groups whose members are in step.
///   - If the transport keeps messages in order (Transport::in_order), servers take one message after the
///     other. That pushes workers apart if each has a host of its own (Service::drifts), and their compute
///     times vary by the machine's step_jitter (Service::step_jitter).
///   - If the devices of a host share its connection, nothing pushes them apart. Their compute times then
///     vary at least by the little that makes all phases occur within the simulation.
///   - If messages share links fairly, compute times vary so much that all phases occur
///     (Service::compute_spread).
///
/// Compute times of synchronous workers with backup workers vary by the machine's step_jitter
/// (Service::step_jitter): up to 256 workers independently, more of them in 256 groups whose members are in
/// step. Workers of `ssp` begin their first steps spread over the time of a step, in up to 8 groups. Those
/// that compute faster than the slowest begin as far ahead of it as they may be, since that is where they are
/// in the long run.
/// @param images of a step, for each member of the plan's first roles, which are the workers
void add_service(const ServerExchange& exchange, const ServerMessages& messages, const Machine& machine,
                 const CostModel& cost, const std::vector<double>& images, Plan& plan);

/// The rule of devices that average parameters with each other, each at its own pace: a device averages what
/// it receives and answers at once, wherever it is in its own step. Devices begin at random moments of the
/// time that a step takes, and their compute times vary by the machine's step_jitter, at least by the little
/// that makes all phases occur.
/// @param plan with their roles  @param images of a step, by device
Service service_of_peers(std::vector<Service::Exchange> exchanges, const Plan& plan, const Machine& machine,
                         const CostModel& cost, const std::vector<double>& images);

/// The same plan over a transport whose messages share links fairly: asynchronous workers then do not push
/// each other apart, but meet at every phase. What servers really do lies between the two.
Plan shared_fairly(Plan plan);

}  // namespace convoy::lowering
