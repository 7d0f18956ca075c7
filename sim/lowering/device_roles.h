// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Devices, of any types, that run the same program and keep the same states.
struct AlikeDevices {
  std::vector<EndpointId> devices;
  /// Bytes that each device keeps throughout the step, apart from what its program adds
  /// (Role::resident_bytes) and what the system reserves.
  StateBytes state_bytes{};
  double frozen_elements = 0;       ///< of each device, if they are not in `state_bytes`
  const GroupSync* sums = nullptr;  ///< sums their gradients, in collectives that devices wait for and launch
};

/// Name of a role of devices of one type.
/// @param first of its members  @param types of the devices that are alike
using RoleName = std::function<std::string(const Device& first, const DeviceType& type, std::size_t types)>;

/// The only place where the roles of a plan's devices are made.
class DeviceRoles {
 public:
  /// @param plan gets the roles, and the waits of held normalizations  @pre all arguments outlive this object
  DeviceRoles(const TrainingGraph& graph, const Machine& machine, const CostModel& cost, Plan& plan)
      : graph_(graph), machine_(machine), cost_(cost), plan_(plan) {}

  /// Adds a role for each type of device among devices that are alike, ordered by the number of the type,
  /// with members in the order of the devices. Types differ in what the system reserves, in how long
  /// normalizations are held (held_normalization.h) and in how long launches take (grouped_launch.h).
  /// @param program what is the same for all types: streams, tasks, and what these add to resident_bytes
  /// @return position of the first of them in Plan::roles
  std::size_t add(const Role& program, AlikeDevices alike, const RoleName& name);

 private:
  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  Plan& plan_;
};

}  // namespace convoy::lowering
