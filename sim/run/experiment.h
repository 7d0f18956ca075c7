// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/replay/engine.h"
#include "sim/run/training.h"
#include "sim/run/variability.h"

namespace convoy::inline runs {

/// One point of an experiment's sweep: the parts still to be read by their folders, and the training.
struct Point {
  YamlNode model, cluster, strategy;
  Training training;
  std::optional<VariabilitySpec> variability = {};
};

/// An experiment file with its `--set`s: a tree of YAML and the axes along which it is varied
/// (docs/experiment.md).
class Experiment {
 public:
  static constexpr std::size_t max_points = 100'000;

  /// @param settings "key.path=value" in the order given; value is YAML, key.path a dotted path ("sweep.PATH"
  ///        sets an axis)
  /// @throws InputError: the file cannot be read, or a part of it that does not depend on the point is wrong.
  static Experiment load(const std::string& file, const std::vector<std::string>& settings);

  /// The same of a text. @param place by which errors call it; files that it names are beside that
  static Experiment parse(const std::string& text, const std::string& place,
                          const std::vector<std::string>& settings);

  const std::string& name() const { return name_; }
  /// All that the results depend on, as exact text: the file's content with the settings in place.
  std::string content() const;
  std::size_t size() const { return size_; }  ///< points; 1 without a sweep
  bool swept() const { return !axes_.empty(); }
  /// Dotted paths and values of a point; the last path changes fastest.
  std::vector<std::pair<std::string, YamlNode>> coordinates(std::size_t index) const;
  /// `jobs:`, where there is one: a queue of jobs for which the runs are throughput (job_study.h).
  const YamlNode* jobs() const { return tree_.find("jobs"); }
  /// What `convoy plan` reads (sim/planning): nullptr where the file is no plan.
  const YamlNode* plan() const { return tree_.find("plan"); }
  const YamlNode& tree() const { return tree_; }
  /// The whole experiment with a point's values in place, without `sweep`. @throws InputError for a plan
  YamlNode resolved(std::size_t index) const;
  /// Reads a point's training and finds its other parts. @throws InputError
  Point point(std::size_t index) const;
  /// Which model shares out links in the replay of every point.
  NetworkModel network_model() const { return network_model_; }
  void use(NetworkModel model) { network_model_ = model; }

 private:
  using Axis = std::pair<std::string, std::vector<YamlNode>>;
  static Experiment read(YamlNode tree, const std::vector<std::string>& settings);
  void read_sweep(const YamlNode& sweep);

  YamlNode tree_;  ///< without `sweep`
  std::string name_;
  std::vector<Axis> axes_;
  std::size_t size_ = 1;
  NetworkModel network_model_ = NetworkModel::convoy;
};

/// Reads a file's tree without `sweep` as a point: its training, and where its other parts are. @throws
/// InputError
Point read_point(const YamlNode& tree);

/// The keys of an experiment's file, for whoever reads about them.
KeySection experiment_keys();

/// "1", "2", ...: what results call a point.
std::string point_id(std::size_t index);
/// Its inverse.
std::size_t point_index(const std::string& id);

/// Exact text of a value: equal for two values if and only if readers cannot tell them apart.
std::string fingerprint(const YamlNode& node);

}  // namespace convoy::runs
