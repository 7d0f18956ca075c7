// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/group_plan.h"
#include "sim/lowering/placed_plan.h"
#include "sim/lowering/server_exchange.h"
#include "sim/lowering/stage_plan.h"
#include "sim/plan/phases.h"

namespace convoy::inline lowering {

/// Whole layers: the network cut into stages, all layers of a stage on each of its devices. Replicas of the
/// whole network are one stage.
struct WholeLayers {
  StagedPasses passes;
  /// The stages; not given: `network`, on one stage.
  std::optional<Stages> stages{};
  /// The whole network, kept by the caller that plans the graph repeatedly. If neither is given, it is made.
  const WholeNetwork* network = nullptr;
};

/// Each layer split over the devices of its stage's groups (images, channels, positions), or replicated.
struct SplitLayers {
  GroupStages stages;
  std::unique_ptr<const std::vector<LayerSharding>> shardings;  ///< by layer; the schedule refers to them
  GraphSchedule schedule;
  SourcePos pos;         ///< of the strategy, for errors
  bool meaning = false;  ///< operations and exchanges say what they mean
};

/// What a strategy decides about a training graph: which device computes what in which order, and how devices
/// with replicas of the same parameters keep these the same. `lower` makes the plan.
struct Annotation {
  std::variant<WholeLayers, SplitLayers, PlacedWork> work;
  /// By collectives, or through servers (only for replicas of the whole network).
  std::variant<GradientSync, ServerExchange> exchange{};
  /// What the strategy reports about its decision; the lowering adds stages and layouts.
  StrategyReport report{};
};

/// The plan of an annotated training graph: the only way from a strategy to programs, messages and memory.
/// @throws InputError if the annotation cannot run on the machine (GroupSync, ParameterAverages, plan_groups)
ReportedPlan lower(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                   Annotation annotation);

}  // namespace convoy::lowering
