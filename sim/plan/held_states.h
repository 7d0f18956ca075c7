// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/plan/parameter_elements.h"
#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// A set for each device, kept once for all devices that have equal sets.
class SetByDevice {
 public:
  SetByDevice() = default;
  SetByDevice(SetByDevice&&) = default;
  void put(EndpointId device, const IndexSet& set);
  /// @return the empty set for a device that has none
  const IndexSet& of(EndpointId device) const { return *sets_[number(device)]; }
  /// Equal for devices that have equal sets.
  std::size_t number(EndpointId device) const { return device < of_.size() ? of_[device] : 0; }
  std::size_t numbers() const { return sets_.size(); }
  const IndexSet& numbered(std::size_t number) const { return *sets_[number]; }

 private:
  std::map<IndexSet, std::size_t> numbers_{{{}, 0}};
  std::vector<const IndexSet*> sets_{&numbers_.begin()->first};
  std::vector<std::size_t> of_;  ///< by device
};

/// The values that devices keep from one step of a plan to the next: the parameters that they update, and the
/// frozen parameters with which they compute. With ZeRO, each device of a group keeps its share of a bucket.
/// Shares follow one another in the order of the group's devices, and the values of a bucket in the order of
/// its parameters.
struct HeldStates {
  SetByDevice parameters, states;  ///< KeptValues
  KeptValues of(EndpointId device) const { return {parameters.of(device), states.of(device)}; }
};
/// @pre the plan has a meaning, and is one of whole layers, or of a hybrid
HeldStates held_states(const Plan& plan, const TrainingGraph& graph, const ParameterElements& elements);

}  // namespace convoy::plans
