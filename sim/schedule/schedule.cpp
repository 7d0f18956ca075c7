// SPDX-License-Identifier: MIT
#include "sim/schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "sim/schedule/places.h"

namespace convoy::inline schedule {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();

/// A job in the cluster, with what policies do not need to know.
struct Running {
  std::size_t index = 0;
  double pause_left_s = 0;
  bool started = false;
  double alone_images_per_s = 0;  ///< where it is
  double slowdown = 1;            ///< by the jobs beside it
  double images_per_s() const { return alone_images_per_s / slowdown; }
  Places::Place place = {};
};

class Cluster {
 public:
  Cluster(const std::vector<Job>& jobs, const Policy& policy, const ScheduleOptions& options)
      : jobs_(jobs), policy_(policy), options_(options), places_(options.pools) {
    outcome_.completion_s.resize(jobs.size());
    for (const GpuPool& pool : options.pools) gpus_ += pool.gpus;
  }

  ScheduleOutcome run() {
    while (next_ < jobs_.size() || !active_.empty()) {
      take_arrivals();
      decide();
      advance(next_event_s());
    }
    outcome_.makespan_s = now_s_;
    if (now_s_ > 0) outcome_.busy_share = busy_gpu_s_ / (now_s_ * gpus_);
    if (training_gpu_s_ > 0) outcome_.sharing_loss = lost_gpu_s_ / training_gpu_s_;
    if (busy_gpu_s_ > 0) outcome_.scattered_share = scattered_gpu_s_ / busy_gpu_s_;
    count_deadlines();
    return std::move(outcome_);
  }

 private:
  void take_arrivals() {
    for (; next_ < jobs_.size() && jobs_[next_].arrival_s <= now_s_; ++next_) {
      active_.push_back({&jobs_[next_], jobs_[next_].images});
      running_.push_back({next_});
      active_.back().admitted = policy_.admits(active_, options_.pools, now_s_);
    }
    for (ActiveJob& job : active_)
      if (job.fair_finish_s == 0) job.fair_finish_s = fair_finish_s(job);
  }

  /// In an equal share of the cluster among the jobs present on arrival, but on at most the GPUs asked for;
  /// for several kinds, the mean weighted by their GPUs.
  double fair_finish_s(const ActiveJob& job) const {
    const auto share = static_cast<std::uint32_t>(gpus_) / static_cast<std::uint32_t>(active_.size());
    double images_per_s = 0, gpus = 0;
    for (std::size_t kind = 0; kind < options_.pools.size(); ++kind) {
      const Throughput& on = job.job->on(kind);
      if (on.most() == 0) continue;
      images_per_s +=
          options_.pools[kind].gpus * on.packed[std::min(on.most(), std::clamp(share, 1u, job.job->asked))];
      gpus += options_.pools[kind].gpus;
    }
    return job.left_images / (images_per_s / gpus);
  }

  void decide() {
    const std::vector<Allocation> given = policy_.allocate(active_, options_.pools, now_s_);
    std::vector<std::size_t> moved;
    for (std::size_t j = 0; j < active_.size(); ++j) {
      const bool changed =
          active_[j].held.gpus != given[j].gpus || (given[j].gpus > 0 && active_[j].held != given[j]);
      if (changed || now_s_ >= active_[j].granted_s + policy_.lease_s()) active_[j].granted_s = now_s_;
      if (!changed) continue;
      if (running_[j].started) {
        running_[j].pause_left_s = given[j].gpus > 0 ? options_.pause_s : 0;
        ++active_[j].changes;
        ++outcome_.changes;
      }
      running_[j].started = running_[j].started || given[j].gpus > 0;
      active_[j].held = given[j];
      moved.push_back(j);
    }
    place(moved);
    if (options_.slowdowns && (!moved.empty() || left_)) slow_down();
    left_ = false;
  }

  void slow_down() {
    std::vector<PlacedJob> placed;
    for (std::size_t j = 0; j < active_.size(); ++j)
      if (active_[j].held.gpus > 0)
        placed.push_back({active_[j].job, active_[j].held.gpus, &running_[j].place});
    const std::vector<double> slowdowns = options_.slowdowns(placed);
    auto next = slowdowns.begin();
    for (std::size_t j = 0; j < active_.size(); ++j)
      running_[j].slowdown = active_[j].held.gpus > 0 ? *next++ : 1;
  }

  void place(std::vector<std::size_t>& moved) {
    for (const std::size_t j : moved) places_.release(running_[j].place);
    std::stable_sort(moved.begin(), moved.end(), [&](std::size_t a, std::size_t b) {
      return active_[a].held.gpus > active_[b].held.gpus;
    });
    for (const std::size_t j : moved) {
      const Allocation& held = active_[j].held;
      running_[j].place = held.gpus > 0 ? places_.take(held) : Places::Place{};
      running_[j].alone_images_per_s =
          held.gpus > 0 ? active_[j].job->on(held.kind).on(held.gpus, running_[j].place.hosts()) : 0;
    }
  }

  double end_s(std::size_t j) const {
    return active_[j].held.gpus == 0
               ? never_s
               : now_s_ + running_[j].pause_left_s + active_[j].left_images / running_[j].images_per_s();
  }

  double next_event_s() const {
    double next_s = next_ < jobs_.size() ? jobs_[next_].arrival_s : never_s;
    for (std::size_t j = 0; j < active_.size(); ++j) next_s = std::min(next_s, end_s(j));
    if (!active_.empty() && next_s < never_s)
      next_s = std::min(next_s, policy_.next_decision_s(active_, now_s_));
    if (next_s == never_s)
      throw std::runtime_error("schedule: " + policy_.name() + " leaves jobs waiting for ever");
    return next_s;
  }

  bool scattered(std::size_t j) const {
    const std::uint32_t size = options_.pools[active_[j].held.kind].gpus_per_host;
    return size > 0 && running_[j].place.hosts() > (active_[j].held.gpus + size - 1) / size;
  }

  void advance(double to_s) {
    std::size_t kept = 0;
    for (std::size_t j = 0; j < active_.size(); ++j) {
      ActiveJob& job = active_[j];
      const bool ends = end_s(j) <= to_s;
      const double held_s = job.held.gpus > 0 ? to_s - now_s_ : 0;
      const double trained_s = std::max(0.0, held_s - running_[j].pause_left_s);
      running_[j].pause_left_s = std::max(0.0, running_[j].pause_left_s - held_s);
      job.left_images -= trained_s * running_[j].images_per_s();
      training_gpu_s_ += trained_s * job.held.gpus;
      lost_gpu_s_ += trained_s * job.held.gpus * (1 - 1 / running_[j].slowdown);
      job.served_gpu_s += held_s * job.held.gpus;
      busy_gpu_s_ += held_s * job.held.gpus;
      if (scattered(j)) scattered_gpu_s_ += held_s * job.held.gpus;
      if (ends) {
        outcome_.completion_s[running_[j].index] = to_s - job.job->arrival_s;
        places_.release(running_[j].place);
        left_ = true;
        continue;
      }
      if (kept != j) {
        active_[kept] = job;
        running_[kept] = std::move(running_[j]);
      }
      ++kept;
    }
    active_.resize(kept);
    running_.resize(kept);
    now_s_ = to_s;
  }

  void count_deadlines() {
    double with = 0, met = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].deadline_s == never_s) continue;
      ++with;
      met += jobs_[j].arrival_s + outcome_.completion_s[j] <= jobs_[j].deadline_s * (1 + 1e-9) ? 1 : 0;
    }
    if (with > 0) outcome_.deadlines_met = met / with;
  }

  const std::vector<Job>& jobs_;
  const Policy& policy_;
  const ScheduleOptions& options_;
  Places places_;
  double gpus_ = 0;
  std::vector<ActiveJob> active_;
  std::vector<Running> running_;  ///< by position in active_
  std::size_t next_ = 0;
  double now_s_ = 0, busy_gpu_s_ = 0, scattered_gpu_s_ = 0;
  double training_gpu_s_ = 0, lost_gpu_s_ = 0;
  bool left_ = false;  ///< a job since the last decision
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

}  // namespace convoy::schedule
