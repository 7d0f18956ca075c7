// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/numerics/numerics_spec.h"
#include "sim/replay/engine.h"
#include "sim/run/shared_node.h"
#include "sim/run/sweep_points.h"
#include "sim/run/training.h"
#include "sim/run/variability.h"

namespace convoy::inline runs {

struct Point;

/// A number of an experiment that says how far off it may be (`spread:`).
struct WrittenSpread {
  std::string path;   ///< dotted
  std::string value;  ///< as it is written
  double spread = 0;  ///< standard deviation of log(number / true one)
  SourcePos pos;      ///< of the spread
  /// The same point with the number less and more by quantile_80 spreads.
  ///@{
  std::shared_ptr<const Point> less, more;
  ///@}
};

/// One point of an experiment's sweep: the parts that their folders still have to read, and the training.
struct Point {
  SharedNode model;                                 ///< for read_model()
  SharedNode cluster;                               ///< for read_cluster()
  SharedNode strategy;                              ///< for read_strategy(), or for a search (`kind: auto`)
  Training training;                                ///< `training:`
  std::optional<VariabilitySpec> variability = {};  ///< `variability:`
  std::vector<WrittenSpread> spreads = {};          ///< `spread:`
  std::optional<NumericsSpec> numerics = {};        ///< `numerics:`
  std::string numerics_identity = {};               ///< its fingerprint
};

/// An experiment file with its `--set` options: a tree of YAML, and the axes along which it is varied
/// (docs/experiment.md).
class Experiment {
 public:
  static constexpr std::size_t max_points = 1'000'000;  ///< of a sweep that is run in one piece

  /// @param settings "key.path=value" in the given order; value is YAML, key.path a dotted path ("sweep.PATH"
  /// sets an axis)
  /// @param shards in which the sweep is run, each of at most max_points
  /// @throws InputError: the file cannot be read, or a part of it that does not depend on the point is wrong.
  static Experiment load(const std::string& file, const std::vector<std::string>& settings,
                         std::size_t shards = 1);

  /// The same of a text. @param place by which errors call it; files that it names are beside that
  static Experiment parse(const std::string& text, const std::string& place,
                          const std::vector<std::string>& settings);

  /// What a point sets: dotted paths and their values.
  using Coordinates = SweepPoints::Coordinates;
  /// The same experiment without sweep and study, at these points: each the dotted paths that are set, and
  /// their values, in this order.
  Experiment at_points(std::vector<Coordinates> points) const;

  const std::string& name() const { return name_; }  ///< `experiment:`
  /// Everything on which the results depend, as exact text: the content of the file with the settings
  /// applied.
  std::string content() const;
  std::size_t size() const { return sweep_->size(); }  ///< number of points; 1 without a sweep
  bool swept() const { return sweep_->has_axes(); }    ///< whether it has a sweep
  /// Dotted paths and values of a point; the last path changes fastest.
  Coordinates coordinates(std::size_t index) const { return sweep_->at(index); }
  const std::shared_ptr<const SweepPoints>& sweep() const { return sweep_; }
  /// `jobs:`, if present: a queue of jobs whose throughput the runs give (job_study.h).
  const YamlNode* jobs() const { return tree_.find("jobs"); }
  /// What `convoy plan` reads (sim/planning): nullptr if the file is not a plan.
  const YamlNode* plan() const { return tree_.find("plan"); }
  /// What `convoy study` reads (sim/studies/regions): nullptr if the file is not a study.
  const YamlNode* study() const { return tree_.find("study"); }
  const YamlNode& tree() const { return tree_; }  ///< all of the file with the settings, without `sweep`
  /// The whole experiment with the values of a point filled in, without `sweep`. @throws InputError for a
  /// plan or a study
  YamlNode resolved(std::size_t index) const;
  /// SweepPoints::place_of
  std::size_t place_of(std::string_view part, std::size_t index) const {
    return sweep_->place_of(part, index);
  }
  /// Reads a point's training and finds its other parts. @throws InputError
  Point point(std::size_t index) const;
  /// Which model shares links in the replay of every point.
  NetworkModel network_model() const { return network_model_; }
  /// Changes network_model().
  void use(NetworkModel model) { network_model_ = model; }

 private:
  static Experiment read(YamlNode tree, const std::vector<std::string>& settings, std::size_t shards);
  void read_sweep(const YamlNode& sweep, std::size_t shards);

  YamlNode tree_;  ///< without `sweep`
  std::string name_;
  /// Stores of its results have it as well.
  std::shared_ptr<const SweepPoints> sweep_ = std::make_shared<const SweepPoints>();
  NetworkModel network_model_ = NetworkModel::convoy;
};

/// Reads the tree of a file without `sweep` as a point: its training, and where its other parts are. @throws
/// InputError
Point read_point(const YamlNode& tree);

/// The keys of an experiment's file, for documentation.
KeySection experiment_keys();

/// Keys of an experiment whose values, or parts of them, a sweep may set.
const std::vector<std::string>& sweepable_parts();

/// "1", "2", ...: the name of a point in results.
std::string point_id(std::size_t index);
/// The inverse of point_id.
std::size_t point_index(const std::string& id);

}  // namespace convoy::runs
