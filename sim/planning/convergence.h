// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/work.h"
#include "sim/base/input_error.h"
#include "topologies/sources.h"

namespace convoy::inline planning {

/// Epochs of training to a target, with the least and the most that runs of it took.
struct EpochsNeeded {
  double epochs = 0, least = 0, most = 0;
};

/// Runs to a target with one global batch.
struct ConvergencePoint {
  double batch = 0;  ///< images an update
  EpochsNeeded needed;
  double runs = 1;  ///< that the mean is of
  std::string source;
  Grade grade = Grade::given;
};

/// Epochs(B) = epochs (1 + B / noise_scale_images): McCandlish, Kaplan, Amodei et al., "An Empirical Model of
/// Large-Batch Training" (arXiv:1812.06162), section 2: steps S and samples E obey (S / S_min - 1)(E / E_min
/// - 1) = 1, and with E = B S and B_crit = E_min / S_min that is E = E_min (1 + B / B_crit); B_crit is about
/// the gradient noise scale.
struct NoiseScale {
  double epochs = 0;  ///< E_min in epochs: with the smallest batches
  double noise_scale_images = 0;
  double at(double batch) const { return epochs * (1 + batch / noise_scale_images); }
};

/// Epochs by global batch with one optimizer, smallest batch first, each batch once.
struct ConvergenceTable {
  std::string name;                     ///< "resnet50-imagenet-75.9"
  std::string text;                     ///< "ResNet-50 v1.5 on ImageNet to 75.9 % top-1"
  std::string network;                  ///< that was trained, as the zoo calls it, where that is known
  std::string optimizer;                ///< that the rows are of: "lars"; "" where they do not say it
  std::vector<std::string> optimizers;  ///< all that there are rows of, the first one first
  std::optional<double> samples;        ///< of an epoch, where the table knows them
  std::vector<ConvergencePoint> points;

  double smallest() const { return points.front().batch; }
  double largest() const { return points.back().batch; }
  /// The points with what their batches need: a batch needs no more epochs than a larger one, whose runs it could
  /// repeat with smaller steps of the same sum; where its own runs took more, they had worse hyperparameters, and
  /// it has the figures of the larger one's.
  std::vector<ConvergencePoint> envelope() const;
  /// Of the envelope; between two of its points straight in the logarithm of the batch. Above the table nothing.
  /// Below it nothing, or, where it may be extrapolated, along the noise scale that fits the envelope, scaled so
  /// that it meets the smallest batch; `most` is then that of the smallest batch.
  std::optional<EpochsNeeded> at(double batch, bool extrapolate) const;
};

/// Names of the tables that come with the program (results/published/convergence.csv), sorted.
std::vector<std::string> goal_names();
/// Whose rows of a table are taken.
struct OptimizerAsked {
  std::string name;  ///< "lars"; "": those of the optimizer that is nearest to `trained`
  SourcePos pos;     ///< of the name
  /// What training has. SGD, with momentum or without, is nearest to itself, then to LARS, which scales its steps by
  /// layer; Adam to itself, then to LAMB, which does the same to Adam's. Otherwise, and with nothing: the first that
  /// the table lists.
  std::optional<Optimizer> trained = {};
};

/// @throws InputError at `pos`: no table of that name; at the optimizer's: it has no rows of it
ConvergenceTable load_goal(const std::string& name, const SourcePos& pos,
                           const OptimizerAsked& optimizer = {});
/// A user's table: CSV with columns batch, epochs and, optional, least, most, runs, optimizer, source. Rows of one
/// batch become one, their mean by runs. @throws InputError as load_goal
ConvergenceTable read_convergence(const std::string& file, const OptimizerAsked& optimizer = {});

/// Least squares of the relative errors: minimises the sum of ((a + b B) / E - 1)^2, epochs = a, noise scale
/// = a / b. Nothing where fewer than two batches are given, or epochs do not grow with the batch.
std::optional<NoiseScale> fit_noise_scale(const std::vector<ConvergencePoint>& points);

}  // namespace convoy::planning
