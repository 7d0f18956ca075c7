// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/averaging.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/replica_program.h"
#include "sim/lowering/stages.h"
#include "sim/plan/phases.h"

namespace convoy::inline lowering {

/// Devices that run the same passes of a stage, each on images of its own.
struct StageSlot {
  std::string name;                 ///< of its roles, followed by the type of the devices
  std::vector<EndpointId> devices;  ///< replicas
  std::vector<Pass> passes;         ///< in order
  /// Where passes are left out: the first pass of the first of the periods that are listed.
  std::size_t first_repeated = 0;
  bool operator==(const StageSlot&) const = default;
};

/// A stage of a cut network, all of which each of its devices computes.
struct StagedLayers {
  std::vector<StageSlot> slots;       ///< of several, slot m mod their number has micro-batch m
  std::uint32_t weight_versions = 1;  ///< that each device keeps
  std::int64_t share_of_update = 1;   ///< without flush: micro-batches that a slot adds up for one update
  std::int64_t in_flight = 1;         ///< without flush: of which a slot may hold the activations at once
  bool operator==(const StagedLayers&) const = default;
};

/// A stretch of passes that are never flushed.
struct EndlessPasses {
  std::int64_t micro_batches = 1;  ///< of a step
  std::int64_t steady = 0;         ///< micro-batches after which the first stage has nothing more to do
  std::int64_t all = 0;            ///< that are simulated
  /// Double-buffered weights: a slot's update may wait until its next backward pass begins.
  bool delayed = false;
  bool operator==(const EndlessPasses&) const = default;
};

/// Periods of passes that follow one another, most of which are left out (RepeatedTasks).
struct RepeatedPasses {
  std::int64_t micro_batches = 1;  ///< of a period: as many for every slot of a stage
  std::uint32_t listed = 0;
  std::uint64_t left_out = 0;
  bool operator==(const RepeatedPasses&) const = default;
};

/// Which of many micro-batches need not be listed, because those before and after them do the same: enough are,
/// as a rule, for a replay to see that it repeats itself; it lists more where it does not
/// (sim/replay/repeated_periods.h). Nothing of fewer than 256, and where that would not leave out three in four.
/// @param period micro-batches after which the order of passes repeats itself, on every slot
/// @param slots that a micro-batch passes through  @param around micro-batches before and after the periods
std::optional<RepeatedPasses> repeated_passes(std::int64_t micro_batches, std::int64_t period,
                                              std::int64_t slots, std::int64_t around);

/// An annotation of whole layers on consecutive stages, each a stage's devices' own: replicas of the network
/// are one stage.
struct StagedPasses {
  double images = 0;  ///< of a step, over all devices
  std::vector<StagedLayers> stages;
  std::optional<EndlessPasses> endless{};  ///< else one step, ended by an update of all parameters
  /// Where passes are left out. Each pass ends a task then, and its messages are those of its micro-batch.
  std::optional<RepeatedPasses> repeats{};
  /// Of replicas of the whole network that average their parameters: their passes are those of
  /// Averaging::period() steps.
  std::optional<Averaging> averaging{};
  /// Passes may share tasks, since nothing else waits for the end of one.
  bool shares_tasks = false;
  bool meaning = false;  ///< the plan says what its tasks mean
  bool operator==(const StagedPasses&) const = default;
};

/// Begins what a plan of these passes means: the lanes of their devices, and the first images of the passes.
/// The global batch goes to a stage's slots micro-batch by micro-batch, and within a slot to one device after
/// the other.
void begin_meaning(StagedPasses& passes, const Machine& machine, Plan& plan);

/// The plan of staged passes. Outputs leave when a stage's pass is over, in order, while it goes on;
/// activations, gradients and sums are on streams of their own. All devices of a stage are replicas: they sum
/// its gradients and update its parameters as `sync` says (ReplicaProgram) when their last backward passes
/// complete them; without flush in the same way after the backward pass that completes an update's, between
/// the passes of other micro-batches. Launches (grouped_launch.h) and waits (held_normalization.h) of
/// replicas included.
/// @param stages of the network: as many as the annotation's
/// @throws InputError as GroupSync and ParameterAverages
/// @param network of the graph, where that is one stage: it keeps the programs, which plans that differ in
/// nothing but links, speeds and how sums are sent share; nullptr: they are made anew
ReportedPlan plan_stages(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                         const Stages& stages, StagedPasses passes, const GradientSync& sync,
                         const WholeNetwork* network = nullptr);

}  // namespace convoy::lowering
