// SPDX-License-Identifier: MIT
#include "sim/schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace convoy {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();

/// A job in the cluster, with what policies need not know.
struct Running {
  std::size_t index = 0;
  double pause_left_s = 0;
  bool started = false;
};

class Cluster {
 public:
  Cluster(const std::vector<Job>& jobs, const Policy& policy, const ScheduleOptions& options)
      : jobs_(jobs), policy_(policy), options_(options) {
    outcome_.completion_s.resize(jobs.size());
  }

  ScheduleOutcome run() {
    while (next_ < jobs_.size() || !active_.empty()) {
      take_arrivals();
      decide();
      advance(next_event_s());
    }
    outcome_.makespan_s = now_s_;
    if (now_s_ > 0) outcome_.busy_share = busy_gpu_s_ / (now_s_ * options_.gpus);
    return std::move(outcome_);
  }

 private:
  void take_arrivals() {
    for (; next_ < jobs_.size() && jobs_[next_].arrival_s <= now_s_; ++next_) {
      active_.push_back({&jobs_[next_], jobs_[next_].images, 0, 0, 0});
      running_.push_back({next_, 0, false});
    }
    // An equal share of the cluster among those there on arrival, but no more GPUs than asked for.
    for (ActiveJob& job : active_)
      if (job.fair_finish_s == 0) {
        const auto share = options_.gpus / static_cast<std::uint32_t>(active_.size());
        job.fair_finish_s = job.remaining_s(std::clamp(share, 1u, job.job->asked));
      }
  }

  void decide() {
    const std::vector<std::uint32_t> given = policy_.allocate(active_, options_.gpus, now_s_);
    for (std::size_t j = 0; j < active_.size(); ++j) {
      if (active_[j].gpus != given[j] || now_s_ >= active_[j].granted_s + policy_.lease_s())
        active_[j].granted_s = now_s_;
      if (active_[j].gpus == given[j]) continue;
      if (running_[j].started) {
        running_[j].pause_left_s = given[j] > 0 ? options_.pause_s : 0;
        ++outcome_.changes;
      }
      running_[j].started = running_[j].started || given[j] > 0;
      active_[j].gpus = given[j];
    }
  }

  double end_s(std::size_t j) const {
    return active_[j].gpus == 0 ? never_s
                                : now_s_ + running_[j].pause_left_s + active_[j].remaining_s(active_[j].gpus);
  }

  double next_event_s() const {
    double next_s = next_ < jobs_.size() ? jobs_[next_].arrival_s : never_s;
    for (std::size_t j = 0; j < active_.size(); ++j) next_s = std::min(next_s, end_s(j));
    if (!active_.empty() && next_s < never_s) next_s = std::min(next_s, policy_.next_decision_s(active_, now_s_));
    if (next_s == never_s)
      throw std::runtime_error("schedule: " + policy_.name() + " leaves jobs waiting for ever");
    return next_s;
  }

  void advance(double to_s) {
    std::size_t kept = 0;
    for (std::size_t j = 0; j < active_.size(); ++j) {
      ActiveJob& job = active_[j];
      const bool ends = end_s(j) <= to_s;
      const double held_s = job.gpus > 0 ? to_s - now_s_ : 0;
      const double trained_s = std::max(0.0, held_s - running_[j].pause_left_s);
      running_[j].pause_left_s = std::max(0.0, running_[j].pause_left_s - held_s);
      job.left_images -= trained_s * job.job->throughput[job.gpus];
      job.served_gpu_s += held_s * job.gpus;
      busy_gpu_s_ += held_s * job.gpus;
      if (ends) {
        outcome_.completion_s[running_[j].index] = to_s - job.job->arrival_s;
        continue;
      }
      active_[kept] = job;
      running_[kept++] = running_[j];
    }
    active_.resize(kept);
    running_.resize(kept);
    now_s_ = to_s;
  }

  const std::vector<Job>& jobs_;
  const Policy& policy_;
  const ScheduleOptions& options_;
  std::vector<ActiveJob> active_;
  std::vector<Running> running_;  ///< by position in active_
  std::size_t next_ = 0;
  double now_s_ = 0, busy_gpu_s_ = 0;
  ScheduleOutcome outcome_;
};

}  // namespace

double ScheduleOutcome::mean_completion_s() const {
  if (completion_s.empty()) return 0;
  return std::accumulate(completion_s.begin(), completion_s.end(), 0.0) /
         static_cast<double>(completion_s.size());
}

ScheduleOutcome run_schedule(const std::vector<Job>& jobs, const Policy& policy,
                             const ScheduleOptions& options) {
  return Cluster(jobs, policy, options).run();
}

}  // namespace convoy
