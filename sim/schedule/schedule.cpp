// SPDX-License-Identifier: MIT
#include "sim/schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "sim/schedule/places.h"

namespace convoy::inline schedule {
namespace {

constexpr double never_s = std::numeric_limits<double>::infinity();

/// A job in the cluster, with what policies do not need to know.
struct Running {
  double pause_left_s = 0;
  bool started = false;
  bool scattered = false;         ///< on more hosts than needed
  double alone_images_per_s = 0;  ///< where it is
  double images_per_s = 0;        ///< beside the others
  double lost_share = 0;          ///< of the time in which it trains, by the jobs beside it
  Places::Place place = {};

  void slow_down(double times) {
    images_per_s = alone_images_per_s / times;
    lost_share = 1 - 1 / times;
  }
};

class Cluster {
 public:
  Cluster(const std::vector<Job>& jobs, const Policy& policy, const ScheduleOptions& options)
      : jobs_(jobs),
        policy_(policy),
        options_(options),
        lease_s_(policy.lease_s()),
        places_(options.pools),
        sharing_(policy.start(arrived_, options.pools)) {
    outcome_.completion_s.resize(jobs.size());
    arrived_.all.reserve(jobs.size());
    running_.reserve(jobs.size());
    for (const GpuPool& pool : options.pools) gpus_ += pool.gpus;
  }

  ScheduleOutcome run() {
    while (next_ < jobs_.size() || !arrived_.present.empty()) {
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
    const std::size_t first = next_;
    for (; next_ < jobs_.size() && jobs_[next_].arrival_s <= now_s_; ++next_) {
      arrived_.all.push_back({&jobs_[next_], jobs_[next_].images});
      arrived_.present.push_back(next_);
      running_.emplace_back();
      arrived_.all.back().admitted = policy_.admits(arrived_, options_.pools, now_s_);
    }
    for (std::size_t j = first; j < next_; ++j) {
      arrived_.all[j].fair_finish_s = fair_finish_s(arrived_.all[j]);
      sharing_->arrive(j);
    }
  }

  /// In an equal share of the cluster among the jobs present on arrival, but on at most the GPUs asked for;
  /// for several kinds, the mean weighted by their GPUs.
  double fair_finish_s(const ActiveJob& job) const {
    const auto share =
        static_cast<std::uint32_t>(gpus_) / static_cast<std::uint32_t>(arrived_.present.size());
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
    std::vector<Grant> grants = sharing_->decide(now_s_);
    std::sort(grants.begin(), grants.end(), [](const Grant& a, const Grant& b) { return a.job < b.job; });
    std::vector<std::size_t> moved;
    auto held = arrived_.holding.begin();
    for (const Grant& grant : grants) {
      for (; held != arrived_.holding.end() && *held < grant.job; ++held) give(*held, {}, moved);
      if (held != arrived_.holding.end() && *held == grant.job) ++held;
      give(grant.job, grant.gpus, moved);
    }
    for (; held != arrived_.holding.end(); ++held) give(*held, {}, moved);
    arrived_.holding.clear();
    for (const Grant& grant : grants) arrived_.holding.push_back(grant.job);
    place(moved);
    if (options_.slowdowns && (!moved.empty() || left_)) slow_down();
    left_ = false;
  }

  void give(std::size_t j, const Allocation& given, std::vector<std::size_t>& moved) {
    ActiveJob& job = arrived_.all[j];
    const bool changed = job.held != given;
    if (changed || now_s_ >= job.granted_s + lease_s_) job.granted_s = now_s_;
    if (!changed) return;
    if (running_[j].started) {
      running_[j].pause_left_s = given.gpus > 0 ? options_.pause_s : 0;
      ++job.changes;
      ++outcome_.changes;
    }
    running_[j].started = true;
    job.held = given;
    moved.push_back(j);
  }

  void slow_down() {
    std::vector<PlacedJob> placed;
    for (const std::size_t j : arrived_.holding)
      placed.push_back({arrived_[j].job, arrived_[j].held.gpus, &running_[j].place});
    const std::vector<double> slowdowns = options_.slowdowns(placed);
    for (std::size_t i = 0; i < slowdowns.size(); ++i) running_[arrived_.holding[i]].slow_down(slowdowns[i]);
  }

  void place(std::vector<std::size_t>& moved) {
    for (const std::size_t j : moved) places_.release(running_[j].place);
    std::stable_sort(moved.begin(), moved.end(), [&](std::size_t a, std::size_t b) {
      return arrived_[a].held.gpus > arrived_[b].held.gpus;
    });
    for (const std::size_t j : moved) {
      const Allocation& held = arrived_[j].held;
      Running& running = running_[j];
      running.place = held.gpus > 0 ? places_.take(held) : Places::Place{};
      running.scattered = is_scattered(held, running.place);
      running.alone_images_per_s =
          held.gpus > 0 ? arrived_[j].job->on(held.kind).on(held.gpus, running.place.hosts()) : 0;
      running.slow_down(1);
    }
  }

  /// @pre it holds GPUs
  double end_s(std::size_t j) const {
    return now_s_ + running_[j].pause_left_s + arrived_[j].left_images / running_[j].images_per_s;
  }

  double next_event_s() {
    double next_s = next_ < jobs_.size() ? jobs_[next_].arrival_s : never_s;
    ends_s_.clear();
    for (const std::size_t j : arrived_.holding) ends_s_.push_back(end_s(j));
    for (const double end_s : ends_s_) next_s = std::min(next_s, end_s);
    if (!arrived_.present.empty() && next_s < never_s)
      next_s = std::min(next_s, policy_.next_decision_s(arrived_, now_s_));
    if (next_s == never_s)
      throw std::runtime_error("schedule: " + policy_.name() + " leaves jobs waiting for ever");
    return next_s;
  }

  bool is_scattered(const Allocation& held, const Places::Place& place) const {
    const std::uint32_t size = options_.pools[held.kind].gpus_per_host;
    return size > 0 && place.hosts() > (held.gpus + size - 1) / size;
  }

  void advance(double to_s) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < arrived_.holding.size(); ++i) {
      const std::size_t j = arrived_.holding[i];
      ActiveJob& job = arrived_.all[j];
      Running& running = running_[j];
      const double held_s = to_s - now_s_;
      const double trained_s = std::max(0.0, held_s - running.pause_left_s);
      running.pause_left_s = std::max(0.0, running.pause_left_s - held_s);
      job.left_images -= trained_s * running.images_per_s;
      training_gpu_s_ += trained_s * job.held.gpus;
      lost_gpu_s_ += trained_s * job.held.gpus * running.lost_share;
      job.served_gpu_s += held_s * job.held.gpus;
      busy_gpu_s_ += held_s * job.held.gpus;
      if (running.scattered) scattered_gpu_s_ += held_s * job.held.gpus;
      if (ends_s_[i] <= to_s)
        end(j, to_s);
      else
        arrived_.holding[kept++] = j;
    }
    arrived_.holding.resize(kept);
    now_s_ = to_s;
  }

  void end(std::size_t j, double at_s) {
    outcome_.completion_s[j] = at_s - jobs_[j].arrival_s;
    places_.release(running_[j].place);
    sharing_->end(j);
    arrived_.present.erase(std::lower_bound(arrived_.present.begin(), arrived_.present.end(), j));
    left_ = true;
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
  double lease_s_;
  Places places_;
  double gpus_ = 0;
  ArrivedJobs arrived_;
  std::unique_ptr<Sharing> sharing_;
  std::vector<Running> running_;  ///< by number
  std::vector<double> ends_s_;    ///< of the jobs that hold GPUs, if nothing changes
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
