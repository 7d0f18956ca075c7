// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy {

/// What policies know of a job while they hand out GPUs of one kind one by one.
struct Offer {
  /// @param left_images that its length is reckoned with
  Offer(const Throughput& throughput, double left_images);

  double left_images;
  std::vector<double> reached;  ///< images/s on the best number of GPUs up to each
  std::uint32_t useful = 0;     ///< more GPUs than these do not help
  std::uint32_t gpus = 0;       ///< given so far

  bool full() const { return gpus == useful; }
  double length_s(std::uint32_t on) const;  ///< infinite on none
};

/// The GPUs of each that are of use to it, of kind 0.
std::vector<Allocation> used(const std::vector<ActiveJob>& jobs, const std::vector<Offer>& offers);

}  // namespace convoy
