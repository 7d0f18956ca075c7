// SPDX-License-Identifier: MIT
// Policies that give jobs the GPUs they ask for, or none.
#include <algorithm>
#include <array>
#include <numeric>

#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

/// The pool with enough free GPUs on which the job trains fastest; pools.size() if there is none.
std::size_t place_of(const Job& job, const std::vector<GpuPool>& pools,
                     const std::vector<std::uint32_t>& left) {
  std::size_t best = pools.size();
  for (std::size_t kind = 0; kind < pools.size(); ++kind) {
    if (left[kind] < job.asked || job.on(kind).most() < job.asked) continue;
    if (best == pools.size() || job.on(kind).packed[job.asked] > job.on(best).packed[job.asked]) best = kind;
  }
  return best;
}

/// Jobs by rank, lowest first, and equal ones in the order of arrival. Each gets all GPUs it asks for, of the
/// kind on which it is fastest, if so many are left, or none.
class InOrder : public Policy {
 public:
  bool several_kinds() const override { return true; }
  std::vector<Allocation> allocate(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                   double now_s) const override {
    std::vector<std::size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> ranks;
    for (const ActiveJob& job : jobs) ranks.push_back(rank(job, now_s));
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
    std::vector<std::uint32_t> left;
    for (const GpuPool& pool : pools) left.push_back(pool.gpus);
    std::vector<Allocation> given(jobs.size());
    for (const std::size_t j : order) {
      const Job& job = *jobs[j].job;
      const std::size_t kind = keeps(jobs[j], now_s) ? jobs[j].held.kind : place_of(job, pools, left);
      if (kind == pools.size()) continue;
      given[j] = {static_cast<std::uint32_t>(kind), job.asked};
      left[kind] -= job.asked;
    }
    return given;
  }

 protected:
  virtual double rank(const ActiveJob& job, double now_s) const = 0;
  /// Whether it stays where it is; its rank is then below all others'.
  virtual bool keeps(const ActiveJob& /*job*/, double /*now_s*/) const { return false; }
};

class Srtf : public InOrder {
 public:
  std::string name() const override { return "srtf"; }
  double rank(const ActiveJob& job, double /*now_s*/) const override { return job.remaining_as_asked_s(); }
};

class Edf : public InOrder {
 public:
  std::string name() const override { return "edf"; }
  double rank(const ActiveJob& job, double /*now_s*/) const override { return job.job->deadline_s; }
};

class TiresiasL : public InOrder {
 public:
  std::string name() const override { return "tiresias-l"; }
  double rank(const ActiveJob& job, double /*now_s*/) const override {
    constexpr std::array bounds_gpu_s{3250.0, 7200.0, 18000.0};
    return static_cast<double>(std::upper_bound(bounds_gpu_s.begin(), bounds_gpu_s.end(), job.served_gpu_s) -
                               bounds_gpu_s.begin());
  }
  // Every minute, so that jobs move to the next queue when they cross a bound.
  double next_decision_s(const std::vector<ActiveJob>& /*jobs*/, double now_s) const override {
    return now_s + 60;
  }
};

class ThemisLike : public InOrder {
 public:
  std::string name() const override { return "themis-like"; }
  double rank(const ActiveJob& job, double now_s) const override {
    if (keeps(job, now_s)) return -std::numeric_limits<double>::infinity();
    return -(now_s - job.job->arrival_s + job.remaining_as_asked_s()) / job.fair_finish_s;
  }
  bool keeps(const ActiveJob& job, double now_s) const override {
    return job.held.gpus > 0 && now_s < job.granted_s + lease_s();
  }
  double lease_s() const override { return 20 * 60; }
  double next_decision_s(const std::vector<ActiveJob>& jobs, double now_s) const override {
    double next_s = std::numeric_limits<double>::infinity();
    for (const ActiveJob& job : jobs)
      if (keeps(job, now_s)) next_s = std::min(next_s, job.granted_s + lease_s());
    return next_s;
  }
};

}  // namespace

std::unique_ptr<Policy> srtf() { return std::make_unique<Srtf>(); }
std::unique_ptr<Policy> tiresias_l() { return std::make_unique<TiresiasL>(); }
std::unique_ptr<Policy> themis_like() { return std::make_unique<ThemisLike>(); }
std::unique_ptr<Policy> edf() { return std::make_unique<Edf>(); }

}  // namespace convoy::schedule
