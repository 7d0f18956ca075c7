// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/work.h"
#include "sim/base/keys.h"
#include "sim/planning/convergence.h"

namespace convoy::inline planning {

/// `goal:` of a plan (goal_keys()): how long to train, and what is done beside training.
class Goal {
 public:
  /// @param samples of `training.dataset`, where given; a table may know them too
  /// @param trained `training.optimizer` @throws InputError
  static Goal read(const YamlNode& node, std::optional<double> samples, Optimizer trained);

  /// Nothing where the batch lies above the goal's table, or below one that is not extrapolated. Of a target whose
  /// epochs are of another number of images: so many that as many images are seen.
  std::optional<EpochsNeeded> epochs(double global_batch) const;
  /// How the epochs of a batch are known, and what there is to say of them ("with lars, ..."; "" for nothing).
  struct Evidence {
    Grade grade = Grade::given;
    std::string text;
  };
  Evidence evidence(double global_batch) const;
  /// Seconds beside training: start-up, evaluations and checkpoints, each of them after so many epochs.
  double beside_s(double epochs) const;
  /// What is done again and again beside training.
  struct Pause {
    double time_s = 0, every_epochs = 1;
    double all_s(double epochs) const;  ///< of a run of so many epochs
  };
  double start_up_s() const { return start_up_s_; }
  const Pause& evaluation() const { return evaluation_; }
  const Pause& checkpoint() const { return checkpoint_; }
  double samples() const { return samples_; }  ///< of an epoch
  const std::string& text() const { return text_; }
  /// Why the goal's table may not hold for this network of the zoo ("": none of it), this optimizer and this data
  /// set.
  std::vector<std::string> doubts(const std::string& network, Optimizer optimizer) const;
  /// Why the goal's epochs may not suffice with this global batch, in images: it is so large that they should have
  /// followed it, or smaller than those of the table.
  std::optional<std::string> batch_doubt(double global_batch) const;
  /// Whether the epochs are what the plan says, whatever trains; else those of a table's runs, or of a law.
  bool is_given() const { return std::holds_alternative<double>(length_); }
  const SourcePos& pos() const { return pos_; }
  /// The batches that the goal may be reached with, from 0 where small ones are extrapolated; nothing where any
  /// will do.
  std::optional<std::pair<double, double>> range() const;
  /// The batches that the goal's table has runs of, without those that took more epochs than a larger one; in
  /// order, empty where there is no table.
  std::vector<double> batches() const;

 private:
  double scale() const;  ///< of the table's epochs, to those of the data set

  std::variant<double, NoiseScale, ConvergenceTable> length_;  ///< a number: epochs
  bool extrapolate_ = true, optimizer_given_ = false;
  double samples_ = 0, start_up_s_ = 0;
  Pause evaluation_, checkpoint_;
  std::string text_;
  SourcePos pos_;
};

/// The keys of `goal:`, for whoever reads about them.
KeySection goal_keys();

}  // namespace convoy::planning
