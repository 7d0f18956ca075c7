// SPDX-License-Identifier: MIT
// Policies that give jobs the GPUs they ask for, or none.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>

#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

/// What is left of the pools while jobs are given the GPUs they ask for.
class FreeGpus {
 public:
  explicit FreeGpus(const std::vector<GpuPool>& pools) {
    for (const GpuPool& pool : pools) left_.push_back(pool.gpus);
  }
  /// Of the pool that has most.
  std::uint32_t most() const { return *std::max_element(left_.begin(), left_.end()); }
  Allocation take(std::uint32_t kind, std::uint32_t gpus) {
    left_[kind] -= gpus;
    return {kind, gpus};
  }
  /// All GPUs that the job asks for, of the kind on which it is fastest among those with enough of them.
  std::optional<Allocation> take(const Job& job) {
    std::size_t best = left_.size();
    for (std::size_t kind = 0; kind < left_.size(); ++kind) {
      if (left_[kind] < job.asked || job.on(kind).most() < job.asked) continue;
      if (best == left_.size() || job.on(kind).packed[job.asked] > job.on(best).packed[job.asked])
        best = kind;
    }
    if (best == left_.size()) return std::nullopt;
    return take(static_cast<std::uint32_t>(best), job.asked);
  }

 private:
  std::vector<std::uint32_t> left_;
};

/// Jobs by rank, lowest first, and equal ones in the order of arrival. Each gets all GPUs it asks for, of the
/// kind on which it is fastest, if so many are left, or none. The rank of a job changes only while it holds
/// GPUs.
class InOrder : public Policy {
 public:
  bool several_kinds() const override { return true; }
  std::unique_ptr<Sharing> start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const override;
  virtual double rank(const ActiveJob& job) const = 0;
};

/// Keeps a list for each number of GPUs that jobs ask for, so that those which ask for more than is left are
/// not looked at.
class InOrderSharing : public Sharing {
 public:
  InOrderSharing(const InOrder& policy, const ArrivedJobs& jobs, const std::vector<GpuPool>& pools)
      : Sharing(jobs), policy_(policy), pools_(pools) {}

  void arrive(std::size_t job) override {
    ranks_.resize(job + 1);
    ranks_[job] = policy_.rank(jobs_[job]);
    orders_[jobs_[job].job->asked].insert({ranks_[job], job});
  }
  void end(std::size_t job) override { orders_[jobs_[job].job->asked].erase({ranks_[job], job}); }

  std::vector<Grant> decide(double /*now_s*/) override {
    for (const std::size_t j : jobs_.holding) {
      const double rank = policy_.rank(jobs_[j]);
      if (rank == ranks_[j]) continue;
      orders_[jobs_[j].job->asked].change({ranks_[j], j}, rank);
      ranks_[j] = rank;
    }
    FreeGpus free(pools_);
    const auto later = [](const Turn& a, const Turn& b) { return *b.next < *a.next; };
    std::priority_queue<Turn, std::vector<Turn>, decltype(later)> turns(later);
    for (const auto& [asked, order] : orders_)
      if (!order.entries().empty()) turns.push({asked, order.entries().begin(), order.entries().end()});
    std::vector<Grant> grants;
    while (!turns.empty()) {
      Turn turn = turns.top();
      turns.pop();
      if (turn.asked > free.most()) continue;
      const std::size_t j = turn.next->job;
      if (const std::optional<Allocation> taken = free.take(*jobs_[j].job)) grants.push_back({j, *taken});
      if (++turn.next != turn.end) turns.push(turn);
    }
    return grants;
  }

 private:
  /// The jobs that ask for a number of GPUs and whose turn has not been yet.
  struct Turn {
    std::uint32_t asked = 0;
    std::vector<JobOrder::Entry>::const_iterator next, end;
  };
  const InOrder& policy_;
  std::vector<GpuPool> pools_;
  std::vector<double> ranks_;                 ///< by job
  std::map<std::uint32_t, JobOrder> orders_;  ///< by GPUs asked for
};

std::unique_ptr<Sharing> InOrder::start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const {
  return std::make_unique<InOrderSharing>(*this, jobs, pools);
}

class Srtf : public InOrder {
 public:
  std::string name() const override { return "srtf"; }
  double rank(const ActiveJob& job) const override { return job.remaining_as_asked_s(); }
};

class Edf : public InOrder {
 public:
  std::string name() const override { return "edf"; }
  double rank(const ActiveJob& job) const override { return job.job->deadline_s; }
};

class TiresiasL : public InOrder {
 public:
  std::string name() const override { return "tiresias-l"; }
  double rank(const ActiveJob& job) const override {
    constexpr std::array bounds_gpu_s{3250.0, 7200.0, 18000.0};
    return static_cast<double>(std::upper_bound(bounds_gpu_s.begin(), bounds_gpu_s.end(), job.served_gpu_s) -
                               bounds_gpu_s.begin());
  }
  // Every minute, so that jobs move to the next queue when they cross a bound.
  double next_decision_s(const ArrivedJobs& /*jobs*/, double now_s) const override { return now_s + 60; }
};

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

/// The fairness of waiting jobs changes with time, each at a rate of its own, so that no order can be kept;
/// but they are only looked at while leases leave GPUs free.
class ThemisSharing : public Sharing {
 public:
  ThemisSharing(const ThemisLike& policy, const ArrivedJobs& jobs, const std::vector<GpuPool>& pools)
      : Sharing(jobs), policy_(policy), pools_(pools) {}
  void arrive(std::size_t job) override {
    const ActiveJob& arrived = jobs_[job];
    terms_.resize(job + 1);
    terms_[job] = {arrived.job->asked, arrived.job->arrival_s, arrived.remaining_as_asked_s(),
                   arrived.fair_finish_s};
  }
  void end(std::size_t /*job*/) override {}

  std::vector<Grant> decide(double now_s) override {
    FreeGpus free(pools_);
    std::vector<Grant> grants;
    for (const std::size_t j : jobs_.holding) {
      if (policy_.keeps(jobs_[j], now_s))
        grants.push_back({j, free.take(jobs_[j].held.kind, jobs_[j].job->asked)});
      else
        terms_[j].remaining_s = jobs_[j].remaining_as_asked_s();
    }
    std::vector<JobOrder::Entry> others = others_within(free.most(), grants, now_s);
    const auto after = [](const JobOrder::Entry& a, const JobOrder::Entry& b) { return b < a; };
    std::make_heap(others.begin(), others.end(), after);
    while (!others.empty() && free.most() > 0) {
      std::pop_heap(others.begin(), others.end(), after);
      const std::size_t j = others.back().job;
      if (const std::optional<Allocation> taken = free.take(*jobs_[j].job)) grants.push_back({j, *taken});
      others.pop_back();
    }
    return grants;
  }

 private:
  /// What the fairness of a job is made of; not kept up to date while the job has a lease.
  struct Terms {
    std::uint32_t asked = 0;
    double arrival_s = 0, remaining_s = 0, fair_finish_s = 0;
    double unfairness(double now_s) const { return (now_s - arrival_s + remaining_s) / fair_finish_s; }
  };
  /// Jobs that ask for at most so many GPUs, without those that keep theirs. @param kept in ascending order
  std::vector<JobOrder::Entry> others_within(std::uint32_t gpus, const std::vector<Grant>& kept,
                                             double now_s) const {
    std::vector<JobOrder::Entry> others;
    if (gpus == 0) return others;
    auto keeper = kept.begin();
    for (const std::size_t j : jobs_.present) {
      if (keeper != kept.end() && keeper->job == j)
        ++keeper;
      else if (terms_[j].asked <= gpus)
        others.push_back({-terms_[j].unfairness(now_s), j});
    }
    return others;
  }

  const ThemisLike& policy_;
  std::vector<GpuPool> pools_;
  std::vector<Terms> terms_;  ///< by job
};

std::unique_ptr<Sharing> ThemisLike::start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const {
  return std::make_unique<ThemisSharing>(*this, jobs, pools);
}

}  // namespace

std::unique_ptr<Policy> srtf() { return std::make_unique<Srtf>(); }
std::unique_ptr<Policy> tiresias_l() { return std::make_unique<TiresiasL>(); }
std::unique_ptr<Policy> themis_like() { return std::make_unique<ThemisLike>(); }
std::unique_ptr<Policy> edf() { return std::make_unique<Edf>(); }

}  // namespace convoy::schedule
