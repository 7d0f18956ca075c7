// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// What numbers of GPUs of one kind are good for; jobs of equal throughput share it.
struct OfferCurve {
  explicit OfferCurve(const Throughput& throughput);
  std::vector<double> reached;                          ///< images/s on the best number of GPUs up to each
  std::vector<std::uint32_t> best;                      ///< that number: the fewest that train as fast
  std::uint32_t useful() const { return best.back(); }  ///< more GPUs than these do not help
};

/// What policies know of a job while they hand out GPUs of one kind one by one.
struct Offer {
  std::shared_ptr<const OfferCurve> curve;
  double left_images = 0;  ///< that its length is reckoned with
  std::uint32_t gpus = 0;  ///< given so far

  double reached(std::uint32_t on) const { return curve->reached[on]; }
  std::uint32_t useful() const { return curve->useful(); }
  bool full() const { return gpus == useful(); }
  double length_s(std::uint32_t on) const;  ///< infinite on none
};

/// One for each job, without GPUs. @param left_images of a job, that its length is reckoned with
std::vector<Offer> make_offers(const std::vector<ActiveJob>& jobs,
                               const std::function<double(const ActiveJob& job)>& left_images);

/// The GPUs of each that are of use to it, of kind 0.
std::vector<Allocation> used(const std::vector<Offer>& offers);

}  // namespace convoy::schedule
