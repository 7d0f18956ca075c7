// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/keys.h"
#include "sim/planning/convergence.h"

namespace convoy::inline planning {

/// `goal:` of a plan (goal_keys()): how long to train, and what is done beside training.
class Goal {
 public:
  /// @param samples of `training.dataset`, where given; a table may know them too. @throws InputError
  static Goal read(const YamlNode& node, std::optional<double> samples);

  /// Nothing where the batch lies outside the goal's table.
  std::optional<EpochsNeeded> epochs(double global_batch) const;
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
  /// Why the goal's table may not hold for this network of the zoo ("": none of it) and this data set.
  std::vector<std::string> doubts(const std::string& network) const;
  /// Why the goal's epochs may not suffice with so large a global batch, in images; nothing where they follow
  /// the batch.
  std::optional<std::string> batch_doubt(double global_batch) const;
  /// Whether the epochs are what the plan says, whatever trains; else those of a table's runs, or of a law.
  bool is_given() const { return std::holds_alternative<double>(length_); }
  const SourcePos& pos() const { return pos_; }
  /// The batches that the goal's table spans; nothing where any will do.
  std::optional<std::pair<double, double>> range() const;

 private:
  std::variant<double, NoiseScale, ConvergenceTable> length_;  ///< a number: epochs
  bool extrapolate_ = false;
  double samples_ = 0, start_up_s_ = 0;
  Pause evaluation_, checkpoint_;
  std::string text_, network_;  ///< network_: that the table is of
  std::optional<double> table_samples_;
  SourcePos pos_;
};

/// The keys of `goal:`, for whoever reads about them.
KeySection goal_keys();

}  // namespace convoy::planning
