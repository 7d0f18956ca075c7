// SPDX-License-Identifier: MIT
// Jobs of a queue, and what policies give them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/schedule/policies.h"

namespace convoy::test {

inline std::shared_ptr<const std::vector<Throughput>> one_kind(std::vector<double> packed) {
  return std::make_shared<const std::vector<Throughput>>(std::vector<Throughput>{{std::move(packed)}});
}

inline Job job(double images, std::uint32_t asked, std::vector<double> throughput, double arrival_s = 0) {
  return {"model", arrival_s, images, asked, one_kind(std::move(throughput))};
}

/// What a policy gives on one pool, in GPUs.
inline std::vector<std::uint32_t> given(const std::unique_ptr<Policy>& policy,
                                        const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                        double now_s) {
  std::vector<std::uint32_t> result;
  for (const Allocation& a : policy->allocate(jobs, {{gpus}}, now_s)) result.push_back(a.gpus);
  return result;
}

inline std::vector<ActiveJob> active(const std::vector<Job>& jobs) {
  std::vector<ActiveJob> result;
  for (const Job& j : jobs) result.push_back({&j, j.images, 0, 1});
  return result;
}

}  // namespace convoy::test
