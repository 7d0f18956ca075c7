// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// Equal devices and how long a step of theirs takes in the mean.
struct DeviceSteps {
  double mean_s;
  std::size_t devices;
};

/// Expected time of the device that is last, when the time of each device's step is normal with its own mean
/// and the standard deviation jitter x mean, each on its own: the integral of 1 - F, F the probability that
/// all are done. Source: David & Nagaraja, Order Statistics, 3rd ed. 2003, sections 3.1 (equal ones: mean +
/// jitter mean E[max], E = 0.564 for 2, 1.424 for 8) and 5.1 (unequal ones).
/// @pre jitter > 0, all means > 0
double expected_last_s(const std::vector<DeviceSteps>& steps, double jitter);

/// The same of so many equal devices, as a multiple of the mean; 1 without jitter.
double expected_last(std::size_t devices, double jitter);

/// The same of equal devices that wait in each step only for those who send to them (as `rounds` say, one after
/// the other, again and again), over the mean step of a device alone: measured in 2,000 steps, of normal times
/// drawn from a fixed seed, after 400; at least 1. Each begins its next step when it has ended its own, and
/// those who send to it have ended theirs; or, where they send first, have begun it.
double neighbours_wait(const std::vector<const Pattern*>& rounds, bool sends_first, double jitter);

/// Devices of synchronous plans wait in every step for the one that is last in it: sets Role::slowdown of all
/// roles with devices to expected_last_s over what that device would take without jitter
/// (Machine::step_jitter), so that one slow device, which decides every step, makes nobody wait for chance.
/// Of a service with a lead of s steps chance evens out over s + 1 steps, jitter / sqrt(s + 1); with a quorum
/// (backup workers) the replay draws it step by step (Service::step_jitter), without either nobody waits. Where
/// all wait for all after every Plan::steps only, chance evens out over these, jitter / sqrt(steps); where
/// the devices of a host sum gradients in between, they wait for each other in every step, and the hosts'
/// last ones, whose times vary less, for each other as devices do (an upper bound). Averages with neighbours:
/// neighbours_wait.
void wait_for_the_last(Plan& plan, const Machine& machine, const CostModel& cost);

}  // namespace convoy::lowering
