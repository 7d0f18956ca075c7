// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/layer_profile.h"
#include "sim/costs/cost_model.h"
#include "sim/plan/phases.h"
#include "sim/plan/plan.h"
#include "sim/replay/engine.h"
#include "sim/results/result.h"
#include "sim/results/write_trace.h"
#include "sim/run/experiment.h"
#include "sim/run/what_if.h"
#include "topologies/cluster.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// A run whose devices come and go.
struct PhasedRun {
  Machine machine;  ///< with all devices that any phase uses, and more
  std::vector<RunPhase> phases;
};

/// A point of an experiment with everything decided: ready to be replayed.
struct PreparedRun {
  std::string id;
  std::vector<std::pair<std::string, YamlNode>> coordinates;
  std::shared_ptr<const TrainingGraph> graph;
  Machine machine;
  CostModel cost;
  Plan plan;
  StrategyReport report;
  std::string strategy;                 ///< its label
  std::optional<std::int64_t> samples;  ///< of the dataset
  /// Where the strategy tells the run's phases; machine, plan and report above are those of the last.
  std::shared_ptr<const PhasedRun> phased = nullptr;
  NetworkModel network_model = NetworkModel::convoy;
  std::string transport = "ideal", input = "synthetic";  ///< their names
  std::vector<std::string> algorithms = {};              ///< that `algorithm: auto` came to
  std::optional<VariabilitySpec> variability = {};
  /// Where what its several hosts speak is assumed (SpokenProtocol): a sentence that says so, and why.
  std::string assumed_network = {};
  /// The same on an ideal network, where nobody says what the hosts speak; else nullptr.
  std::shared_ptr<const PreparedRun> on_ideal_network = nullptr;
};

/// Reads points of one experiment. Models and clusters that several points share are read once.
class Preparer {
 public:
  explicit Preparer(const Experiment& experiment) : experiment_(&experiment) {}
  Preparer() = default;  ///< of points that stand in no experiment
  /// @param instead strategy in place of the point's own
  /// @throws InputError: whatever is wrong with the point, its plan included.
  PreparedRun prepare(std::size_t index, const YamlNode* instead = nullptr);
  /// @param change what to make of the cluster's machine before anything is decided
  PreparedRun prepare(const Point& point, const YamlNode* instead, const WhatIf& change = {});
  /// Reads the parts of a point that no point before it had, so that what is wrong with one of them is said
  /// before anything is simulated, and so that processes forked afterwards have the first of them.
  /// @returns what is in the users' files that the parts were read from (InputRecord::digests)
  /// @throws InputError
  std::string read_parts(const Point& point);
  /// The model or cluster of a point, read where it has not been. Valid until the next call of a member.
  const Model& model(const YamlNode& node);
  const ClusterSpec& cluster(const YamlNode& node);
  const Experiment& experiment() const { return *experiment_; }
  /// Which model shares out links in the replays of its points.
  NetworkModel network_model() const {
    return experiment_ ? experiment_->network_model() : NetworkModel::convoy;
  }
  /// Whether each replay needs a process of its own: SimGrid's clock goes on from one to the next.
  bool replays_apart() const { return network_model() == NetworkModel::simgrid; }

 private:
  /// What was read, and InputRecord::digests of the files that it was read from.
  template <class Value>
  struct Read {
    Value value;
    std::string inputs;
  };

  PreparedRun prepare_over(Protocol protocol, const Point& point, const YamlNode* instead,
                           const WhatIf& change);
  const Read<Model>& model_read(const YamlNode& node);
  const Read<ClusterSpec>& cluster_read(const YamlNode& node);
  const Read<LayerProfile>& profile_read(const std::string& file);
  std::shared_ptr<const TrainingGraph> graph(const YamlNode& node, const TrainingOptions& options);
  CostModel cost(const Training& training, const TrainingGraph& graph, const Machine& machine);

  const Experiment* experiment_ = nullptr;
  std::map<std::string, Read<Model>> models_;
  std::map<std::string, std::shared_ptr<const TrainingGraph>> graphs_;
  std::map<std::string, Read<ClusterSpec>> clusters_;
  std::map<std::string, Read<LayerProfile>> profiles_;
  std::map<std::string, std::string> inputs_of_parts_;  ///< by the part's name and fingerprint
};

/// What one run gives.
struct RunOutput {
  RunResult result;
  std::vector<TraceProcess> trace;  ///< where asked for
};

/// Replays a prepared point. The result is the same to the last bit whatever the process has replayed before,
/// but with NetworkModel::simgrid, whose clock goes on (sim/replay/engine.h).
RunOutput simulate(const PreparedRun& run, bool with_trace);

}  // namespace convoy::runs
