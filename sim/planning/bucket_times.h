// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/lowering/gradient_sync.h"
#include "sim/planning/candidates.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline planning {

/// A bucket of gradients on one of several equal devices that compute whole steps.
struct BucketTimes {
  std::int64_t bucketing = 0;  ///< which of bucketings_of() fills it
  double bytes = 0;
  double ready_s = 0;  ///< operations until backward completes it
  double copy_s = 0;   ///< copying its gradients into it, or back, where they are copied (HostWays)
};

/// The ways in which strategies of the plan that sum gradients on devices fill buckets, each once: what of a strategy's sums says
/// which gradients are in which bucket, and whether these are sent during backward.
std::vector<GradientSync> bucketings_of(const PlanSpec& spec, const ServerTable& servers);

/// The place of a strategy's among them; nothing where it sums otherwise, or gradients of several micro-batches.
std::optional<std::size_t> find_bucketing(const std::vector<GradientSync>& all, const YamlNode& strategy);

/// Buckets of each of them, in the order in which they are sent.
/// @param run of one device @param done_s by operation of the graph: operations until it is done
std::vector<BucketTimes> bucket_times(const std::vector<GradientSync>& bucketings, const PreparedRun& run,
                                      const std::vector<double>& done_s);

}  // namespace convoy::planning
