// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// The value of numbers of GPUs of one kind; jobs of equal throughput share it.
struct OfferCurve {
  explicit OfferCurve(const Throughput& throughput);
  std::vector<double> reached;      ///< images/s on the best number of GPUs up to each number
  std::vector<std::uint32_t> best;  ///< that best number: the smallest that trains as fast
  std::uint32_t useful() const { return best.back(); }  ///< more GPUs than these do not help
};

/// What policies know about a job while they hand out GPUs of one kind one by one.
struct Offer {
  std::shared_ptr<const OfferCurve> curve;
  double left_images = 0;  ///< by which its length is computed
  std::uint32_t gpus = 0;  ///< given so far

  double reached(std::uint32_t on) const { return curve->reached[on]; }
  std::uint32_t useful() const { return curve->useful(); }
  bool full() const { return gpus == useful(); }
  double length_s(std::uint32_t on) const;  ///< infinite on none
};

/// One offer for each job, without GPUs. @param left_images images of a job by which its length is computed
std::vector<Offer> make_offers(const std::vector<ActiveJob>& jobs,
                               const std::function<double(const ActiveJob& job)>& left_images);

/// The GPUs that are useful to each job, of kind 0.
std::vector<Allocation> used(const std::vector<Offer>& offers);

}  // namespace convoy::schedule
