// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/training_graph.h"
#include "sim/numerics/batches.h"
#include "sim/numerics/data.h"
#include "sim/numerics/kernels.h"
#include "sim/prove/gradient_ways.h"

namespace convoy::inline numerics {

/// Values of a network's parameters, by TrainingGraph::parameters.
template <class Real>
using ParameterValues = std::vector<std::vector<Real>>;

/// Those with which training begins: weights and biases uniform within 1 / sqrt(inputs of an output), as
/// PyTorch's convolutions and linear layers; normalization 1 and 0; layer scale 1e-6 (ConvNeXt).
template <class Real>
ParameterValues<Real> first_parameters(const TrainingGraph& graph, std::uint64_t seed);

/// What of a training graph kernels are called with.
class NetworkIndex {
 public:
  explicit NetworkIndex(const TrainingGraph& graph);

  /// Those that it uses: its own, or those of another layer (Layer::weights_of).
  const std::vector<std::size_t>& parameters_of(std::uint32_t layer) const { return parameters_of_[layer]; }
  /// Inputs of layers that are the output of a layer.
  const std::vector<GradientWays::Slot>& readers_of(std::uint32_t layer) const { return readers_of_[layer]; }
  /// Whether the output's gradient is needed: the layer, or one before it, has parameters.
  bool needs_gradient(std::uint32_t layer) const { return needs_gradient_[layer]; }
  /// Layers whose outputs nobody reads: each has a loss.
  const std::vector<std::uint32_t>& outputs() const { return outputs_; }

 private:
  std::vector<std::vector<std::size_t>> parameters_of_;
  std::vector<std::vector<GradientWays::Slot>> readers_of_;
  std::vector<bool> needs_gradient_;
  std::vector<std::uint32_t> outputs_;
};

/// Whether an operation reads what another one makes.
bool reads(const TrainingGraph& graph, OpId operation, OpId other);

/// How well a network classifies images that it only looks at.
struct Judgement {
  double loss = 0, accuracy = 0;  ///< mean cross entropy, share of the images classified right
};
/// By the network's last output. @param running by layer
template <class Real>
Judgement judge(const TrainingGraph& graph, const NetworkIndex& index,
                const ParameterValues<Real>& parameters, const std::vector<RunningStatistics<Real>>& running,
                const LearningData::Part& part);

}  // namespace convoy::numerics
