// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// A number of equal devices, and the mean time of their step.
struct DeviceSteps {
  double mean_s;
  std::size_t devices;
};

/// Expected time of the device that is last, if the times of the devices' steps are independent and normal,
/// each with its own mean and the standard deviation jitter x mean: the integral of 1 - F, where F is the
/// probability that all are done. Source: David & Nagaraja, Order Statistics, 3rd ed. 2003, sections 3.1
/// (equal devices: mean + jitter mean E[max], E = 0.564 for 2, 1.424 for 8) and 5.1 (unequal devices).
/// @pre jitter > 0, all means > 0
double expected_last_s(const std::vector<DeviceSteps>& steps, double jitter);

/// The same for a number of equal devices, as a multiple of the mean; 1 without jitter.
double expected_last(std::size_t devices, double jitter);

/// The same for equal devices that wait in each step only for the devices that send to them (as `rounds` say,
/// which are used in turn), as a multiple of the mean step of a device alone; at least 1. It is measured over
/// 2,000 steps after 400 others, with normal times drawn from a fixed seed. A device begins its next step
/// when it has ended its own and the devices that send to it have ended theirs or, with `sends_first`, have
/// begun it.
double neighbours_wait(const std::vector<const Pattern*>& rounds, bool sends_first, double jitter);

/// The devices of a synchronous plan wait in every step for the one that is last. This sets Role::slowdown of
/// all roles with devices to expected_last_s, divided by what that device would take without jitter
/// (Machine::step_jitter). So where one slow device decides every step, nobody waits because of chance.
///   - With a service in which workers may be s steps ahead, chance evens out over s + 1 steps: jitter /
///     sqrt(s + 1). With a quorum (backup workers) the replay draws it step by step (Service::step_jitter). A
///     service with neither has no waits.
///   - If all devices wait for each other only once in Plan::steps, chance evens out over these: jitter /
///     sqrt(steps). If the devices of a host sum gradients in between, they wait for each other in every
///     step, and the last devices of the hosts, whose times vary less, are taken to wait for each other as
///     devices do (an upper bound).
///   - Averages with neighbours: neighbours_wait.
void wait_for_the_last(Plan& plan, const Machine& machine, const CostModel& cost);

}  // namespace convoy::lowering
