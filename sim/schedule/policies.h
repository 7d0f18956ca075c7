// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy {

/// Decides which of the jobs in the cluster get how many GPUs.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  /// GPUs of each job, at most `gpus` in all. @param jobs in the order of arrival
  virtual std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                              double now_s) const = 0;
  /// When to decide again if no job arrives or ends before: these always bring a decision.
  virtual double next_decision_s(const std::vector<ActiveJob>& /*jobs*/, double /*now_s*/) const {
    return std::numeric_limits<double>::infinity();
  }
  /// How long a job keeps GPUs that it was given, whatever comes; 0: until the next decision.
  virtual double lease_s() const { return 0; }
};

/// AFS-L: GPUs one by one, each to the job that a chain of comparisons prefers. Of two jobs without GPUs the
/// one that would end first on one GPU; else the longer one, b, if one more GPU raises its throughput by a
/// greater part of what it then has, (p_b(w+1) - p_b(w)) / p_b(w+1), than the shorter one's of what it has
/// now, (p_a(w+1) - p_a(w)) / p_a(w). p(w) is what the best number of GPUs up to w gives, and nobody is given
/// GPUs that do not help it. Source: Hwang et al., NSDI 2021, as three public re-implementations
/// agree (heyfey/vodascheduler, pkg/algorithm/afsl.go, 756e4d02, among them).
std::unique_ptr<Policy> afs_l();

/// Shortest remaining time first, with preemption; every job on the GPUs it asks for, or waiting.
std::unique_ptr<Policy> srtf();

/// Tiresias-L: least attained service first, GPUs times seconds, in queues with bounds at 3250, 7200 and
/// 18000 GPU seconds, each in the order of arrival; with preemption; jobs get what they ask for. Source: Gu
/// et al., NSDI 2019 (discretized two-dimensional LAS); bounds as in the authors' public simulator.
std::unique_ptr<Policy> tiresias_l();

/// Like Themis (Mahajan et al., NSDI 2020): the jobs first whose finish-time fairness, (time in the cluster +
/// time still to come on the GPUs asked for) / time in an equal share of the cluster, is worst; jobs get what
/// they ask for, and keep it for leases of 20 minutes, as there, after which they compete again. Auctions and
/// placement are left out.
std::unique_ptr<Policy> themis_like();

/// "afs-l", "srtf", "tiresias-l", "themis-like"; nullptr for other names.
std::unique_ptr<Policy> make_policy(const std::string& name);
const std::vector<std::string>& policy_names();

}  // namespace convoy
