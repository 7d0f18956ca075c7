// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// The average power of every device of `machine` while it computes its part of `plan`, W: the mean over its
/// operations, weighted by their times. An operation draws
///   idle_power + (peak_power - idle_power) (a + 0.64 (1 - a))
/// where a = its time if memory had no limit, divided by its time: arithmetic takes the board to its limit,
/// waiting for memory does not (energy.cpp has the source of the 0.64). A device without operations: its
/// peak_power.
std::vector<double> busy_power_w(const Plan& plan, const Machine& machine, const CostModel& cost);

/// Energy of a step in which device d draws power_w[d] for busy_s(d) and otherwise its idle power; hosts draw
/// their own.
double step_energy_j(const Machine& machine, double step_s, const std::vector<double>& power_w,
                     const std::function<double(std::size_t)>& busy_s);

/// The same for one device, without its host.
double device_energy_j(const DeviceType& type, double power_w, double busy_s, double step_s);

}  // namespace convoy::runs
