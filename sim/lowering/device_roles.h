// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Devices that do the same and keep the same, of any type.
struct AlikeDevices {
  std::vector<EndpointId> devices;
  /// Of each throughout the step, beside what its program adds for itself (Role::resident_bytes) and what the
  /// system reserves.
  StateBytes state_bytes{};
  double frozen_elements = 0;       ///< of each, where `state_bytes` has none of them
  const GroupSync* sums = nullptr;  ///< sums their gradients, in collectives that devices wait for and launch
};

/// Name of a role of devices of one type.
/// @param first of its members  @param types of the devices that are alike
using RoleName = std::function<std::string(const Device& first, const DeviceType& type, std::size_t types)>;

/// Makes the roles of a plan's devices: every one of them here.
class DeviceRoles {
 public:
  /// @param plan gets the roles, and what is held its waits  @param all outlive this object
  DeviceRoles(const TrainingGraph& graph, const Machine& machine, const CostModel& cost, Plan& plan)
      : graph_(graph), machine_(machine), cost_(cost), plan_(plan) {}

  /// Adds a role for each type among devices that are alike, by number of the type, with members in the order of
  /// the devices. Types differ in what the system reserves, and in how long holding (held_normalization.h) and
  /// launches (grouped_launch.h) take.
  /// @param program streams, tasks, what they add to resident_bytes: all that is the same for all types
  /// @return position of the first of them in Plan::roles
  std::size_t add(const Role& program, AlikeDevices alike, const RoleName& name);

 private:
  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  Plan& plan_;
};

}  // namespace convoy::lowering
