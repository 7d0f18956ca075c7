// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/plan/parameter_elements.h"
#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// Sets of which many devices have the same one.
class SetByDevice {
 public:
  SetByDevice() = default;
  SetByDevice(SetByDevice&&) = default;
  void put(EndpointId device, const IndexSet& set);
  /// @return of a device without a set: the empty one
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

/// Which values devices keep from one step of a plan to the next: those that they update, of parameters that
/// are not trained those that they compute with; with ZeRO each device of a group its share of a bucket. Shares
/// follow one another in the order of the group's devices, values of a bucket in that of its parameters.
struct HeldStates {
  SetByDevice parameters, states;  ///< KeptValues
  KeptValues of(EndpointId device) const { return {parameters.of(device), states.of(device)}; }
};
/// @pre the plan says what it means, and is one of whole layers, or of a hybrid
HeldStates held_states(const Plan& plan, const TrainingGraph& graph, const ParameterElements& elements);

}  // namespace convoy::plans
