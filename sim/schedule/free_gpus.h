// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// What is left of the pools while jobs are given the GPUs they ask for.
class FreeGpus {
 public:
  explicit FreeGpus(const std::vector<GpuPool>& pools) {
    for (const GpuPool& pool : pools) left_.push_back(pool.gpus);
  }
  /// Of the pool that has most.
  std::uint32_t most() const { return *std::max_element(left_.begin(), left_.end()); }
  Allocation take(std::uint32_t kind, std::uint32_t gpus) {
    left_[kind] -= gpus;
    return {kind, gpus};
  }
  /// All GPUs that the job asks for, of the kind on which it is fastest among those with enough of them.
  std::optional<Allocation> take(const Job& job) {
    std::size_t best = left_.size();
    for (std::size_t kind = 0; kind < left_.size(); ++kind) {
      if (left_[kind] < job.asked || job.on(kind).most() < job.asked) continue;
      if (best == left_.size() || job.on(kind).packed[job.asked] > job.on(best).packed[job.asked])
        best = kind;
    }
    if (best == left_.size()) return std::nullopt;
    return take(static_cast<std::uint32_t>(best), job.asked);
  }

 private:
  std::vector<std::uint32_t> left_;
};

}  // namespace convoy::schedule
