// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/training_graph.h"
#include "sim/numerics/network.h"
#include "sim/numerics/optimizer.h"

namespace convoy::inline numerics {

/// Images of a batch that a device works on at a time: of which batch normalization takes mean and variance.
struct ImageShare {
  std::int64_t first = 0, count = 0;
};

/// A device that learns alone, layer by layer, without a plan: the reference for all plans.
template <class Real>
class Learner {
 public:
  /// @param data outlives the learner
  Learner(const TrainingGraph& graph, const LearningData& data, std::uint64_t seed, double learning_rate);

  /// Learns from the next `batch` images, share by share. @return mean loss of the images
  double step(std::int64_t batch, const std::vector<ImageShare>& shares);
  /// The same with gradients only, of those that `step` would take.
  ParameterValues<Real> gradients(std::int64_t batch, const std::vector<ImageShare>& shares);

  const ParameterValues<Real>& parameters() const { return parameters_; }
  void set_parameters(ParameterValues<Real> parameters) { parameters_ = std::move(parameters); }
  const std::vector<RunningStatistics<Real>>& running() const { return running_; }
  Judgement judged() const { return judge(graph_, index_, parameters_, running_, data_.held_out); }

 private:
  void learn_from(const LabelledImages<Real>& images, std::int64_t first, double scale,
                  ParameterValues<Real>& gradients);

  const TrainingGraph& graph_;
  const LearningData& data_;
  NetworkIndex index_;
  BatchOrder order_;
  std::uint64_t seed_;
  double learning_rate_, loss_ = 0;
  std::int64_t step_ = 0, position_ = 0;
  ParameterValues<Real> parameters_;
  std::vector<OptimizerState<Real>> states_;
  std::vector<RunningStatistics<Real>> running_;
};

}  // namespace convoy::numerics
