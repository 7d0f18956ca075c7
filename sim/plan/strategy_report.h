// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline plans {

/// Updates that a gradient's parameters had missed when it was applied, over gradients and tensors.
struct Staleness {
  double mean = 0, max = 0;
  bool operator==(const Staleness&) const = default;
};

/// A stage of a pipeline, as the strategy describes it.
struct PipelineStage {
  std::vector<EndpointId> devices;  ///< its replicas
  std::vector<std::string> layers;
  std::uint32_t weight_versions = 1;  ///< that each of them keeps
  Staleness staleness{};
};

/// What a partition of the training graph's work over devices costs, where the strategy makes one.
struct PartitionSummary {
  std::string method;
  double connectivity_bytes = 0;  ///< sent in a step: every tensor once to each further part that needs it
  double cut_bytes = 0;           ///< of tensors that any other part needs, each once however many need it
  double load_imbalance = 1;      ///< largest part over mean, in the measure that was balanced
  bool operator==(const PartitionSummary&) const = default;
};

/// Consecutive layers that are shared out among the devices in one way, where the strategy decides it layer
/// by layer.
struct LayerGroup {
  std::string layout;  ///< "batch", "filter"
  std::vector<std::string> layers;
  double parameter_bytes = 0;  ///< of one copy of their parameters on the device that has most
  double exchange_bytes = 0;   ///< sent in a step for the tensors that they read, and for their gradients
  double gradient_bytes = 0;   ///< sent in a step to sum weight gradients
  bool operator==(const LayerGroup&) const = default;
};

/// What a strategy tells of its plan beside the tasks: sections of results.json that only some strategies
/// have. No replay reads it.
struct StrategyReport {
  /// Where workers may miss updates: how many, even if none. What a replay measures of a service stands in
  /// its place.
  std::optional<Staleness> staleness{};
  std::vector<PipelineStage> stages{};
  std::optional<PartitionSummary> partition{};
  std::vector<LayerGroup> layouts{};
  /// Images of each device in a step, where devices come and go: the results then have the run's phases.
  std::vector<std::int64_t> images_by_device{};
  /// A line each: what the strategy did otherwise than its name says, for the run's warnings.
  std::vector<std::string> notes{};
};

}  // namespace convoy::plans
