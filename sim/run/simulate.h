// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/phases.h"
#include "sim/plan/plan.h"
#include "sim/results/result.h"
#include "sim/results/write_trace.h"
#include "sim/run/experiment.h"
#include "sim/run/what_if.h"
#include "topologies/cluster.h"
#include "topologies/machine.h"

namespace convoy {

/// A run whose devices change as it goes.
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
  std::string strategy;                 ///< its label
  std::optional<std::int64_t> samples;  ///< of the dataset
  /// Where the run has several phases; machine and plan above are those of the last.
  std::shared_ptr<const PhasedRun> phased = nullptr;
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
  const ClusterSpec& cluster(const YamlNode& node);
  const Experiment& experiment() const { return *experiment_; }

 private:
  const Model& model(const YamlNode& node);
  std::shared_ptr<const TrainingGraph> graph(const YamlNode& node, const TrainingOptions& options);

  const Experiment* experiment_ = nullptr;
  std::map<std::string, Model> models_;
  std::map<std::string, std::shared_ptr<const TrainingGraph>> graphs_;
  std::map<std::string, ClusterSpec> clusters_;
};

/// What one run gives.
struct RunOutput {
  RunResult result;
  std::vector<TraceProcess> trace;  ///< where asked for
};

/// Replays a prepared point. Only the first call of a process gives results that are the same to the last bit
/// (sim/replay/engine.h), so every point of a sweep has a process of its own.
RunOutput simulate(const PreparedRun& run, bool with_trace);

}  // namespace convoy
