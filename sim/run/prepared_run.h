// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/shared_value.h"
#include "sim/costs/cost_model.h"
#include "sim/plan/phases.h"
#include "sim/plan/plan.h"
#include "sim/replay/engine.h"
#include "sim/run/doubts.h"
#include "sim/run/experiment.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// A run with a changing set of devices.
struct PhasedRun {
  Machine machine;  ///< with at least all devices that any phase uses
  std::vector<RunPhase> phases;
};

/// A point of an experiment with everything decided, ready to be replayed. Two that are equal have the same output.
struct PreparedRun {
  std::shared_ptr<const TrainingGraph> graph;
  Machine machine;
  CostModel cost;
  Plan plan;
  StrategyReport report;
  std::string strategy;                 ///< its label
  std::optional<std::int64_t> samples;  ///< of the dataset
  /// If the strategy has phases: the run's phases; machine, plan and report above are those of the last.
  std::shared_ptr<const PhasedRun> phased = nullptr;
  NetworkModel network_model = NetworkModel::convoy;
  std::string transport = "ideal", input = "synthetic";  ///< their names
  std::vector<std::string> algorithms = {};              ///< those that `algorithm: auto` chose
  bool algorithms_named = false;                         ///< it chose from those that the experiment names
  std::optional<VariabilitySpec> variability = {};
  /// Where what its several hosts speak is assumed (SpokenProtocol): a sentence that says so, and why.
  std::string assumed_network = {};
  /// Which of its several hosts' networks are faster for a while (NicSpec::burst_Bps): a sentence that says so.
  std::string bursts = {};
  /// The same on an ideal network, where nobody says what the hosts speak; else nullptr.
  SharedValue<PreparedRun> on_ideal_network = nullptr;
  /// Those that are simulated (Moves::network, loader, written).
  std::vector<Doubt> doubts = {};
  bool by_class = false;  ///< its result lists classes of devices and links (EntryList), and not each of them
  bool operator==(const PreparedRun&) const = default;
};

}  // namespace convoy::runs
