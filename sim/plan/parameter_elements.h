// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/index_set.h"

namespace convoy::inline plans {

/// What a device keeps from one step to the next, as values of the network's parameters.
struct KeptValues {
  IndexSet parameters;  ///< that the step computes with
  IndexSet states;      ///< of which it has what the optimizer keeps: velocities, moments, fp32 copies
  bool operator==(const KeptValues&) const = default;
};

/// The values of a network's parameters, trained or not, numbered through: tensor by tensor in the model's
/// order, in each of them output channel by output channel, in each of these input channel by input channel.
class ParameterElements {
 public:
  /// @param graph outlives this object
  explicit ParameterElements(const TrainingGraph& graph);

  std::int64_t count() const { return first_.back(); }
  IndexSet frozen() const { return frozen_; }  ///< those that are not trained
  /// Those of one of a layer's tensors that a part of the layer's work has: of some channels of its output,
  /// or of its input. What is added to a sum over channels of the input is everyone's.
  IndexSet of_tensor(std::size_t layer, std::size_t tensor, const IndexRanges& channels,
                     const IndexRanges& inputs) const;
  /// The same of all of a layer's tensors.
  IndexSet of_layer(std::size_t layer, const IndexRanges& channels, const IndexRanges& inputs) const;
  /// Of all values, which are whole in every replica of the network.
  KeptValues all() const;
  /// Bytes that go with values when they move to another device: those of the class weights and of the
  /// optimizer's states (resident_bytes).
  double bytes(const KeptValues& values) const;
  /// Of the layer that a value is of.
  const std::string& layer_name(std::int64_t value) const;

 private:
  std::size_t tensor_index(std::size_t layer, std::size_t tensor) const { return tensors_[layer] + tensor; }

  const TrainingGraph& graph_;
  std::vector<std::size_t> tensors_;  ///< by layer: the first of its tensors, of all tensors
  std::vector<std::int64_t> first_;   ///< by tensor: its first value; and the end of all
  IndexSet frozen_;
};

}  // namespace convoy::plans
