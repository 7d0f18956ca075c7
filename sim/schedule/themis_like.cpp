// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "sim/schedule/free_gpus.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

class ThemisLike : public Policy {
 public:
  std::string name() const override { return "themis-like"; }
  bool several_kinds() const override { return true; }
  std::unique_ptr<Sharing> start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const override;
  double lease_s() const override { return 20 * 60; }
  bool keeps(const ActiveJob& job, double now_s) const {
    return job.held.gpus > 0 && now_s < job.granted_s + lease_s();
  }
  double next_decision_s(const ArrivedJobs& jobs, double now_s) const override {
    double next_s = std::numeric_limits<double>::infinity();
    for (const std::size_t j : jobs.holding)
      if (keeps(jobs[j], now_s)) next_s = std::min(next_s, jobs[j].granted_s + lease_s());
    return next_s;
  }
};

/// What the finish-time fairness of a job without a lease is made of. It never falls, rounding included.
struct Unfairness {
  double arrival_s = 0, remaining_s = 0, fair_finish_s = 0;
  double at(double now_s) const { return (now_s - arrival_s + remaining_s) / fair_finish_s; }
};

/// Jobs that ask for the same number of GPUs, the least fairly treated first. @param order by what they will be at a later
/// time, the least fairly treated first, and so a bound on what they are: only the first of it are looked at.
class LeastFair {
 public:
  LeastFair(const JobOrder& order, const std::vector<Unfairness>& jobs, double now_s)
      : next_(order.entries().begin()), end_(order.entries().end()), jobs_(jobs), now_s_(now_s) {
    look();
  }
  bool empty() const { return found_.empty(); }
  const JobOrder::Entry& front() const { return found_.front(); }
  void pop() {
    std::pop_heap(found_.begin(), found_.end(), after);
    found_.pop_back();
    look();
  }

 private:
  static bool after(const JobOrder::Entry& a, const JobOrder::Entry& b) { return b < a; }
  void look() {
    for (; next_ != end_ && (found_.empty() || !(found_.front() < *next_)); ++next_) {
      found_.push_back({-jobs_[next_->job].at(now_s_), next_->job});
      std::push_heap(found_.begin(), found_.end(), after);
    }
  }

  std::vector<JobOrder::Entry>::const_iterator next_, end_;  ///< not looked at yet
  const std::vector<Unfairness>& jobs_;
  double now_s_;
  std::vector<JobOrder::Entry> found_;  ///< a heap, by what they are now
};

/// The unfairness of waiting jobs grows with time, at a rate of its own for each. They are kept in the order in which they will be
/// some decisions later.
class ThemisSharing : public Sharing {
 public:
  ThemisSharing(const ThemisLike& policy, const ArrivedJobs& jobs, const std::vector<GpuPool>& pools)
      : Sharing(jobs), policy_(policy), pools_(pools) {}
  void arrive(std::size_t job) override {
    const ActiveJob& arrived = jobs_[job];
    unfairness_.resize(job + 1);
    unfairness_[job] = {arrived.job->arrival_s, arrived.remaining_as_asked_s(), arrived.fair_finish_s};
    if (arrived.held.gpus == 0) wait(job);
  }
  void end(std::size_t /*job*/) override {}  // it held GPUs

  std::vector<Grant> decide(double now_s) override {
    if (!(now_s <= horizon_s_)) look_ahead(now_s);
    ++decisions_;
    FreeGpus free(pools_);
    std::vector<Grant> grants;
    for (const std::size_t j : jobs_.holding) {
      if (policy_.keeps(jobs_[j], now_s)) {
        grants.push_back({j, free.take(jobs_[j].held.kind, jobs_[j].job->asked)});
        continue;
      }
      unfairness_[j].remaining_s = jobs_[j].remaining_as_asked_s();
      wait(j);
    }
    const std::size_t kept = grants.size();
    give(free, grants, now_s);
    for (std::size_t i = kept; i < grants.size(); ++i)
      waiting_[jobs_[grants[i].job].job->asked].erase(at_horizon(grants[i].job));
    return grants;
  }

 private:
  static constexpr double decisions_ahead = 64;

  JobOrder::Entry at_horizon(std::size_t job) const { return {-unfairness_[job].at(horizon_s_), job}; }
  void wait(std::size_t job) { waiting_[jobs_[job].job->asked].insert(at_horizon(job)); }

  /// By the mean time between decisions up to now.
  void look_ahead(double now_s) {
    if (decisions_ == 0) first_s_ = now_s;
    horizon_s_ = now_s + decisions_ahead * (now_s - first_s_) / std::max(1.0, decisions_);
    for (auto& [asked, order] : waiting_)
      order.sort_anew([&](std::size_t job) { return at_horizon(job).figure; });
  }

  void give(FreeGpus& free, std::vector<Grant>& grants, double now_s) const {
    std::vector<std::pair<std::uint32_t, LeastFair>> by_asked;
    for (const auto& [asked, order] : waiting_)
      if (asked <= free.most()) by_asked.emplace_back(asked, LeastFair(order, unfairness_, now_s));
    for (;;) {
      LeastFair* first = nullptr;
      for (auto& [asked, jobs] : by_asked)
        if (asked <= free.most() && !jobs.empty() && (!first || jobs.front() < first->front())) first = &jobs;
      if (!first) return;
      const std::size_t j = first->front().job;
      if (const std::optional<Allocation> taken = free.take(*jobs_[j].job)) grants.push_back({j, *taken});
      first->pop();
    }
  }

  const ThemisLike& policy_;
  std::vector<GpuPool> pools_;
  std::vector<Unfairness> unfairness_;         ///< by job; not kept up to date while the job has a lease
  std::map<std::uint32_t, JobOrder> waiting_;  ///< by GPUs asked for, jobs without a lease by at_horizon()
  double horizon_s_ = -std::numeric_limits<double>::infinity();
  double first_s_ = 0;    ///< the first decision
  double decisions_ = 0;  ///< up to now
};

std::unique_ptr<Sharing> ThemisLike::start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const {
  return std::make_unique<ThemisSharing>(*this, jobs, pools);
}

}  // namespace

std::unique_ptr<Policy> themis_like() { return std::make_unique<ThemisLike>(); }

}  // namespace convoy::schedule
