// SPDX-License-Identifier: MIT
#pragma once

#include "sim/replay/executor.h"

namespace convoy::inline replays {

/// Executes a plan with a service. Where is_measured_repeatedly() (steady_state.h), the result is the mean of eight
/// measurements, whose clients begin at random moments and draw other compute times. These are independent of each other, as
/// stretches of one measurement are not: who meets whom in one of these goes on in the next. If the 95 % interval of the mean
/// step over them (Student's t) is not within 0.5 %, they are done again with four times as many steps to warm up and to
/// measure, as long as that takes no more than 2^17 messages: it is longer measurements that are wanted then, and not more of
/// them, since all begin in the same way. Source: Law, Simulation Modeling and Analysis, 5th ed. 2015, section 9.5.2
/// (replication/deletion).
Execution run_service(const FoldedPlan& folded, const Surroundings& surroundings);

/// The plan of a service, whose clients' compute times are their means and that do not wait for each other. Without contention
/// (Contention::none) no step of the plan is shorter in the long run: a client's time at any event is a maximum over sums of
/// durations, which is convex in the drawn ones, so that its mean is no less than what it is for their means (Jensen's
/// inequality).
Plan with_clients_alone(const Plan& plan);
bool are_clients_alone(const Service& service);

}  // namespace convoy::replays
