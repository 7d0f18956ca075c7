// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// One of the allocations that a job may have, and its cost in the objective.
struct Choice {
  Allocation allocation;
  double cost = 0;
};

/// For each job the position of one of its choices, such that the sum of their costs is small and no pool is
/// overdrawn: a multiple-choice knapsack. First greedily by cost saved per GPU, then by moves of one job, or
/// of one job for which another makes room, as long as they save cost (only up to 20,000 choices of all
/// jobs). So the result is a local optimum with respect to such moves, not always the optimum.
/// @param choices of each job; the first has no GPUs
std::vector<std::size_t> assign(const std::vector<std::vector<Choice>>& choices,
                                const std::vector<GpuPool>& pools);

}  // namespace convoy::schedule
