// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// One of the allocations that a job may have, and what it costs the objective.
struct Choice {
  Allocation allocation;
  double cost = 0;
};

/// For each job the position of one of its choices, such that their costs' sum is small and no pool is
/// overdrawn: a multiple-choice knapsack. Greedily by cost saved a GPU, then by moves of one job, or of one
/// job that another makes room for, as long as they save (these only up to 20,000 choices of all jobs); so
/// within what one such move could save of the optimum's neighbourhood, not always the optimum.
/// @param choices of each job; the first has no GPUs
std::vector<std::size_t> assign(const std::vector<std::vector<Choice>>& choices,
                                const std::vector<GpuPool>& pools);

}  // namespace convoy::schedule
