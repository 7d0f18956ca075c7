// SPDX-License-Identifier: MIT
// Policies that give jobs the GPUs they ask for, or none.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "sim/schedule/free_gpus.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

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
    as_before_ = false;
  }
  void end(std::size_t job) override {
    orders_[jobs_[job].job->asked].erase({ranks_[job], job});
    as_before_ = false;
  }

  std::vector<Grant> decide(double /*now_s*/) override {
    for (const std::size_t j : jobs_.holding) {
      const double rank = policy_.rank(jobs_[j]);
      if (rank == ranks_[j]) continue;
      orders_[jobs_[j].job->asked].change({ranks_[j], j}, rank);
      ranks_[j] = rank;
      as_before_ = false;
    }
    if (!std::exchange(as_before_, true)) grants_ = grants();
    return grants_;
  }

 private:
  /// The jobs that ask for a number of GPUs and whose turn has not been yet.
  struct Turn {
    std::uint32_t asked = 0;
    std::vector<JobOrder::Entry>::const_iterator next, end;
  };

  std::vector<Grant> grants() const {
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

  const InOrder& policy_;
  std::vector<GpuPool> pools_;
  std::vector<double> ranks_;                 ///< by job
  std::map<std::uint32_t, JobOrder> orders_;  ///< by GPUs asked for
  std::vector<Grant> grants_;                 ///< of the last decision
  bool as_before_ = false;                    ///< the orders are those of the last decision
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

}  // namespace

std::unique_ptr<Policy> srtf() { return std::make_unique<Srtf>(); }
std::unique_ptr<Policy> tiresias_l() { return std::make_unique<TiresiasL>(); }
std::unique_ptr<Policy> edf() { return std::make_unique<Edf>(); }

}  // namespace convoy::schedule
