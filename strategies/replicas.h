// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace convoy {

enum class Shares : std::uint8_t { equal, speed };
inline const std::vector<std::string> shares_names{"equal", "speed"};

/// Devices that hold a replica each and get the same number of images: one role of a data-parallel plan.
struct ReplicaClass {
  std::uint32_t device_type;
  std::int64_t images;
  std::vector<EndpointId> devices;
  std::vector<std::int64_t> micro_batches = {};  ///< images of each, where BatchSpec::dealt gives them
};

/// Shares the batch out among all devices of the machine, and groups devices of one type and share.
/// equal: the same number of images each. speed: in proportion to speed (one step on an equal share, by the
/// cost model), whole images by largest remainder, at least one each.
/// A batch that is dealt out already stays as it is; a device may then have nothing to compute.
/// @throws InputError (at batch.pos) where a global batch cannot be shared out: not divisible into equal
/// shares, or
///         fewer images than devices.
std::vector<ReplicaClass> share_batch(const StrategyInput& input, Shares shares);

/// Images of each of a replica's `micro_batches` equal parts. @throws InputError (at batch.pos) where its
/// share does not divide.
double micro_batch_images(const StrategyInput& input, const ReplicaClass& replicas,
                          std::int64_t micro_batches);

/// The role of a replica class without its program: members, streams "compute" and "communication", resident
/// memory.
/// @param keeps_optimizer_state false where a parameter server keeps it.
Role replica_role(const StrategyInput& input, const ReplicaClass& replicas, bool keeps_optimizer_state);

}  // namespace convoy
