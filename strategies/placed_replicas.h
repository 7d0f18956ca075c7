// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/keys.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/annotator.h"
#include "strategies/cost_table.h"

namespace convoy::inline strategies {

/// Work that is placed on several devices (PlacedWork), in micro-batches, and several times side by side: keys of
/// all strategies that place it.
struct PlacedReplicas {
  static constexpr std::uint32_t most_micro_batches = 10'000;

  std::uint32_t micro_batches = 1;
  std::uint32_t replicas = 1;
  /// Of the replicas of a device's parameters: as `inner` says it, or one all-reduce after the last backward
  /// pass.
  GradientSync sync = summed_after_backward();
  bool nested = false;  ///< there is an `inner`
  SourcePos replicas_pos;

  /// Whether the work takes place once, on the whole batch.
  bool is_one() const { return micro_batches == 1 && replicas == 1; }
  /// ", 4 micro-batches, 2 replicas (ring all-reduce)"
  std::string label() const;

  /// What sums the gradients of the replicas; nullptr: there is one.
  const GradientSync* sums() const { return replicas > 1 ? &sync : nullptr; }
  /// Devices of each replica. @param given by the strategy (`parts`, at `given_pos`), where it is; else all that there are
  /// @throws InputError (at given_pos or replicas_pos) where the cluster has not as many, or they do not divide
  std::uint32_t devices_a_replica(std::size_t cluster, std::optional<std::uint32_t> given = {},
                                  const SourcePos& given_pos = {}) const;
  /// That a step cannot be shorter (Annotator::floor): operations of one replica wait for each other.
  /// @param chain_s the longest way of them, of so many images on so many devices
  /// @param operations "layers": what waits
  std::optional<StepFloor> floor(
      const BatchSpec& batch, CostTable& table, std::optional<std::uint32_t> given,
      std::string_view operations,
      const std::function<double(double images, std::int64_t devices)>& chain_s) const;
  /// Images of a micro-batch of a replica of so many devices. @throws InputError (at batch.pos)
  std::int64_t images(const BatchSpec& batch, std::uint32_t devices) const;
  /// The same; nothing where they do not divide, or there are no devices.
  std::optional<std::int64_t> images_if_whole(const BatchSpec& batch, std::int64_t devices) const;
};

/// Where a replica has one device: that does all, as `single` and `data_parallel` do. @throws InputError (at
/// batch.pos)
Annotation annotate_undivided(const StrategyInput& input, const PlacedReplicas& placed);

/// `micro_batches`, `replicas` and `inner`.
const Keys<PlacedReplicas>& placed_replica_keys();

}  // namespace convoy::strategies
