// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// The hosts on which a job's GPUs are.
class Places {
 public:
  explicit Places(const std::vector<GpuPool>& pools);

  /// GPUs of one job: (host, how many) in the pool of their kind.
  struct Place {
    std::uint32_t kind = 0;
    std::vector<std::pair<std::size_t, std::uint32_t>> on;
    /// 0 if placement does not matter.
    std::uint32_t hosts() const { return static_cast<std::uint32_t>(on.size()); }
  };
  void release(const Place& place);
  /// Takes empty hosts as far as the job fills them, and for the rest the host where it leaves the least
  /// free, or, if no host has room for all of it, the hosts with the most free GPUs. @pre there are enough
  /// free GPUs
  Place take(const Allocation& allocation);

 private:
  struct Hosts {
    std::uint32_t size = 0;  ///< GPUs of a host, 0: not told apart
    std::vector<std::uint32_t> free;
  };
  std::vector<Hosts> pools_;
};

}  // namespace convoy::schedule
