// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/lowering/averaging.h"
#include "sim/lowering/replica_program.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Devices that run the same passes of a stage, each on images of its own.
struct StageSlot {
  std::string name;                 ///< of its roles, followed by the type of the devices
  std::vector<EndpointId> devices;  ///< replicas
  std::vector<Pass> passes;         ///< in order
  /// If passes are left out: the first pass of the first listed period.
  std::size_t first_repeated = 0;
  bool operator==(const StageSlot&) const = default;
};

/// A stage of a network. Each of its devices computes all of the stage.
struct StagedLayers {
  std::vector<StageSlot> slots;       ///< of n slots, slot m mod n has micro-batch m
  std::uint32_t weight_versions = 1;  ///< that each device keeps
  std::int64_t share_of_update = 1;   ///< without flush: micro-batches that a slot adds up for one update
  std::int64_t in_flight = 1;         ///< without flush: micro-batches whose activations a slot may hold
  bool operator==(const StagedLayers&) const = default;
};

/// Part of an endless sequence of passes that are never flushed.
struct EndlessPasses {
  std::int64_t micro_batches = 1;  ///< of a step
  std::int64_t steady = 0;         ///< micro-batches after which the first stage has nothing more to do
  std::int64_t all = 0;            ///< micro-batches that are simulated
  /// Double-buffered weights: a slot's update may wait until its next backward pass begins.
  bool delayed = false;
  bool operator==(const EndlessPasses&) const = default;
};

/// Periods of passes that follow one another, most of which are left out (RepeatedTasks).
struct RepeatedPasses {
  std::int64_t micro_batches = 1;  ///< of a period: as many for every slot of a stage
  std::uint32_t listed = 0;
  std::uint64_t left_out = 0;
  std::uint32_t copied = 0;  ///< of those left out: the plan lists them as copies of the last listed one
  bool operator==(const RepeatedPasses&) const = default;
};

/// Which of many micro-batches need not be listed, because those before and after them do the same. As a
/// rule, those that are listed are enough for a replay to see that the step repeats itself; otherwise the
/// replay lists more (sim/replay/repeated_periods.h). Leaves out nothing of fewer than 256 micro-batches, or
/// if it could not leave out three of four.
/// @param period micro-batches after which the order of passes repeats itself on every slot
/// @param slots the slots through which a micro-batch passes  @param around micro-batches before and after
/// the periods
std::optional<RepeatedPasses> repeated_passes(std::int64_t micro_batches, std::int64_t period,
                                              std::int64_t slots, std::int64_t around);

/// An annotation of whole layers on consecutive stages, each with devices of its own. Replicas of the whole
/// network are one stage.
struct StagedPasses {
  double images = 0;  ///< of a step, over all devices
  std::vector<StagedLayers> stages;
  std::optional<EndlessPasses> endless{};  ///< not given: one step, ended by an update of all parameters
  /// If passes are left out. Each pass then ends a task, and its messages are those of its micro-batch.
  std::optional<RepeatedPasses> repeats{};
  /// For replicas of the whole network that average their parameters. Their passes are those of
  /// Averaging::period() steps.
  std::optional<Averaging> averaging{};
  /// Passes may share tasks, since nothing else waits for the end of one.
  bool shares_tasks = false;
  bool meaning = false;  ///< the plan says what its tasks mean
  bool operator==(const StagedPasses&) const = default;
};

/// The beginning of the meaning of a plan with these passes: the lanes of their devices, and the first images
/// of the passes. The global batch is dealt to the slots of a stage micro-batch by micro-batch, and within a
/// slot to one device after the other.
void begin_meaning(StagedPasses& passes, const Machine& machine, Plan& plan);

}  // namespace convoy::lowering
