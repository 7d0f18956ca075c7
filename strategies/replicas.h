// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/annotator.h"
#include "strategies/cost_table.h"

namespace convoy::inline strategies {

/// How many images of a batch each device gets: the same number, or in proportion to its speed.
enum class Shares : std::uint8_t { equal, speed };
/// The key `shares` of a strategy with replicas.
template <class Options>
Key<Options> shares_key(Shares Options::*field) {
  return choice_key<Options>("shares", {"equal", "speed"},
                             "images a device: the same for all, or in proportion to its speed", field);
}

/// Devices that hold a replica each and get the same number of images: one role of a data-parallel plan.
struct ReplicaClass {
  std::uint32_t device_type;                     ///< index into Machine::device_types
  std::int64_t images;                           ///< of one device in a step
  std::vector<EndpointId> devices;               ///< those that hold a replica
  std::vector<std::int64_t> micro_batches = {};  ///< images of each, where BatchSpec::dealt gives them
};

/// Shares the batch out among all devices of the machine, and groups devices of one type and share.
/// equal: the same number of images each. speed: in proportion to speed (one step on an equal share, by the
/// cost model), whole images by largest remainder, at least one each.
/// A batch that is dealt out already stays as it is; a device may then have nothing to compute.
/// @throws InputError (at batch.pos) where a global batch cannot be shared out: not divisible into equal
///         shares, or fewer images than devices.
std::vector<ReplicaClass> share_batch(const StrategyInput& input, Shares shares);

/// What no step of replicas with equal shares stays below: each computes all of its micro-batches one after
/// the other, the slowest device too. Nothing where the batch does not divide.
/// @param updates each of them runs the optimizer's whole step, too
std::optional<StepFloor> floor_of_replicas(const BatchSpec& batch, CostTable& table,
                                           std::int64_t micro_batches, bool updates);

/// Images of each of a replica's `micro_batches` equal parts. @throws InputError (at batch.pos) where its
/// share does not divide.
double micro_batch_images(const StrategyInput& input, const ReplicaClass& replicas,
                          std::int64_t micro_batches);

/// A plan has no more operations of micro-batches than this, those included that it leaves out (RepeatedTasks): a
/// replay may have to list them.
inline constexpr std::int64_t most_planned_operations = 4'000'000;

/// What more would take is told before it is built.
/// @param steps of a plan of several (Averaging::period)
/// @throws InputError (at batch.pos)
void check_plan_size(const StrategyInput& input, std::int64_t micro_batches, std::int64_t steps = 1);

/// The passes of replicas of the whole network, one a device: each computes its share of the batch in
/// `micro_batches` equal parts (or as dealt), one after the other.
/// @param averaging where they average parameters: how; its period has so many steps
/// @param may_leave_out most of many micro-batches, since they are gone through in the same way
/// @throws InputError (at batch.pos) where a share does not divide, or as check_plan_size()
StagedPasses replica_passes(const StrategyInput& input, const std::vector<ReplicaClass>& replicas,
                            std::int64_t micro_batches, const std::optional<Averaging>& averaging = {},
                            bool may_leave_out = false);

/// Such replicas whose gradients are summed, or parameters averaged, as `sync` says. @throws InputError as
/// replica_passes()
Annotation annotate_replicas(const StrategyInput& input, const GradientSync& sync,
                             const std::vector<ReplicaClass>& replicas, std::int64_t micro_batches,
                             const std::optional<Averaging>& averaging = {});

}  // namespace convoy::strategies
