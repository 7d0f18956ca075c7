// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline plans {

/// The number of updates that the parameters of a gradient had missed when it was applied, over gradients and
/// tensors.
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
  bool operator==(const PipelineStage&) const = default;
};

/// What a partition of the training graph's work over devices costs, if the strategy makes one.
struct PartitionSummary {
  std::string method;
  double connectivity_bytes = 0;  ///< sent in a step: every tensor, once for each other part that needs it
  double cut_bytes = 0;           ///< of the tensors that another part needs, each counted once
  double load_imbalance = 1;      ///< largest part divided by the mean, in the measure that was balanced
  bool operator==(const PartitionSummary&) const = default;
};

/// Consecutive layers that are divided among the devices in the same way, if the strategy decides this layer
/// by layer.
struct LayerGroup {
  std::string layout;  ///< "batch", "filter"
  std::vector<std::string> layers;
  double parameter_bytes = 0;  ///< of one copy of their parameters, on the device that has most of them
  double exchange_bytes = 0;   ///< sent in a step for the tensors that they read and their gradients
  double gradient_bytes = 0;   ///< sent in a step to sum weight gradients
  bool operator==(const LayerGroup&) const = default;
};

/// Who averages parameters with whom in gossip, as the experiment asks for it: device i (or host i) of N sends to
/// i - 1 and i + 1 on a ring, to i + 1, i + 2, i + 4 ... modulo N on an exponential graph, and with one peer to one of
/// these in each step, to each of them in turn.
struct GossipNeighbours {
  enum class Graph : std::uint8_t { ring, exponential, one_peer };
  Graph graph = Graph::ring;
  bool are_hosts = false;     ///< whose devices sum their gradients
  bool asynchronous = false;  ///< each asks the next one on the ring, at its own pace
  bool operator==(const GossipNeighbours&) const = default;
};

/// What a strategy reports about its plan beside the tasks: sections of results.json that only some
/// strategies have. No replay reads it.
struct StrategyReport {
  /// If workers may miss updates: how many, even if it is 0. For a service it is replaced by what a replay
  /// measures.
  std::optional<Staleness> staleness{};
  std::vector<PipelineStage> stages{};
  std::optional<PartitionSummary> partition{};
  std::vector<LayerGroup> layouts{};
  std::optional<GossipNeighbours> gossip{};
  /// Images of each device in a step, where devices come and go: the results then have the run's phases.
  std::vector<std::int64_t> images_by_device{};
  /// Warnings of the run, one line each: what the strategy does differently than its name says.
  std::vector<std::string> notes{};
  bool operator==(const StrategyReport&) const = default;
};

}  // namespace convoy::plans
