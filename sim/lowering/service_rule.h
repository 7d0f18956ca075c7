// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/server_messages.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// The rule by which servers answer and the order in which workers set out, for a plan with its roles and
/// communications: workers that do not all wait for each other.
///
/// Workers of `async` begin at random moments of the time that a step takes; up to 64 each for itself, more
/// of them in 64 groups that go in step. Where the transport keeps messages in order (Transport::in_order),
/// servers take one after the other, which pushes workers apart if each has a host of its own
/// (Service::drifts), and what they compute varies by the machine's step_jitter (Service::step_jitter). Where
/// devices of a host share its connection, nothing pushes them apart: it varies at least by so little that
/// phases are met within the simulation. Where messages share links fairly, it varies so much that all phases
/// are met (Service::compute_spread).
/// Compute times of synchronous workers with backup workers vary by the machine's step_jitter
/// (Service::step_jitter), of up to 256 each for itself, of more in 256 groups that go in step. Workers of
/// `ssp` begin their first steps spread over that time in up to 8 groups; those that compute
/// faster than the slowest begin as far ahead of it as they may, where they are in the long run.
/// @param images of a step, of the members of the plan's first roles, which are the workers
void add_service(const ServerExchange& exchange, const ServerMessages& messages, const Machine& machine,
                 const CostModel& cost, const std::vector<double>& images, Plan& plan);

/// The rule of devices that average parameters with each other, each at its own pace: what comes is averaged
/// and answered at once, whatever the device is at. They begin at random moments of the time that a step
/// takes, and what they compute varies by the machine's step_jitter, at least by so little that all phases
/// are met.
/// @param plan with their roles  @param images of a step, by device
Service service_of_peers(std::vector<Service::Exchange> exchanges, const Plan& plan, const Machine& machine,
                         const CostModel& cost, const std::vector<double>& images);

/// A plan with a service as it is over a transport whose messages share links fairly: asynchronous workers do
/// not push each other apart then, but meet at every phase. What servers really do lies between the two.
Plan shared_fairly(Plan plan);

}  // namespace convoy::lowering
