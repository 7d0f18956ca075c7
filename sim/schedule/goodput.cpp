// SPDX-License-Identifier: MIT
// Policies that choose an allocation for each job such that a sum over the jobs is minimal.
#include <algorithm>
#include <cmath>

#include "sim/schedule/assignment.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {
namespace {

constexpr double round_s = 300;  ///< between decisions if no job arrives or ends

/// The share of a job's time in the cluster that remains if its GPUs change once more: (T - changes pause) /
/// (T + pause).
double restart_factor(const ActiveJob& job, double now_s, double pause_s) {
  const double age_s = now_s - job.job->arrival_s;
  if (job.held.gpus == 0 || age_s + pause_s <= 0) return 1;
  return std::max(0.0, age_s - static_cast<double>(job.changes) * pause_s) / (age_s + pause_s);
}

class ByCost : public DecidesAnew {
 public:
  bool adapts_batch() const override { return true; }
  double next_decision_s(const ArrivedJobs& /*jobs*/, double now_s) const override { return now_s + round_s; }

 protected:
  std::vector<Allocation> decide(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                 double now_s) const override {
    std::vector<std::vector<Choice>> choices;
    for (const ActiveJob& job : jobs) choices.push_back(choices_of(job, pools, jobs.size(), now_s));
    std::vector<Allocation> given;
    const std::vector<std::size_t> chosen = assign(choices, pools);
    for (std::size_t j = 0; j < jobs.size(); ++j) given.push_back(choices[j][chosen[j]].allocation);
    return given;
  }
  virtual std::vector<Choice> choices_of(const ActiveJob& job, const std::vector<GpuPool>& pools,
                                         std::size_t jobs, double now_s) const = 0;
};

class PolluxLike : public ByCost {
 public:
  std::string name() const override { return "pollux-like"; }

 protected:
  std::vector<Choice> choices_of(const ActiveJob& job, const std::vector<GpuPool>& pools, std::size_t jobs,
                                 double now_s) const override {
    // The mean of speedups to the power of -1 is largest when the sum of 1 / speedup is smallest.
    constexpr double cost_of_none = 1e6;  // a job without GPUs spoils the mean, whatever the others have
    const Throughput& on = job.job->on(0);
    const auto share =
        std::clamp<std::uint32_t>(pools[0].gpus / static_cast<std::uint32_t>(jobs), 1, on.most());
    const double fair = on.packed[on.best_of(share)], restart = restart_factor(job, now_s, pause_s);
    std::vector<Choice> choices{{{}, cost_of_none}};
    for (std::uint32_t w = 1; w <= std::min(on.most(), pools[0].gpus); ++w) {
      const double factor = w == job.held.gpus ? 1 : restart;
      if (factor > 0) choices.push_back({{0, w}, fair / (on.packed[w] * factor)});
    }
    return choices;
  }
};

class SiaLike : public ByCost {
 public:
  std::string name() const override { return "sia-like"; }
  bool several_kinds() const override { return true; }

 protected:
  std::vector<Choice> choices_of(const ActiveJob& job, const std::vector<GpuPool>& pools,
                                 std::size_t /*jobs*/, double now_s) const override {
    constexpr double power = -0.5, cost_of_none = 1.1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t kind = 0; kind < pools.size(); ++kind)
      if (job.job->on(kind).most() > 0) least = std::min(least, job.job->on(kind).packed[1]);
    const double restart = restart_factor(job, now_s, pause_s);
    std::vector<Choice> choices{{{}, cost_of_none}};
    for (std::uint32_t kind = 0; kind < pools.size(); ++kind) {
      const Throughput& on = job.job->on(kind);
      const std::uint32_t host = pools[kind].gpus_per_host;
      const std::uint32_t most = std::min(on.most(), pools[kind].gpus);
      for (std::uint32_t w = 1; w <= most; w = host == 0 || 2 * w <= host ? 2 * w
                                               : w < host                 ? host
                                                                          : w + host) {
        const double factor = job.held == Allocation{kind, w} ? 1 : restart;
        if (factor > 0) choices.push_back({{kind, w}, std::pow(factor * on.packed[w] / least, power)});
      }
    }
    return choices;
  }
};

}  // namespace

std::unique_ptr<Policy> pollux_like() { return std::make_unique<PolluxLike>(); }
std::unique_ptr<Policy> sia_like() { return std::make_unique<SiaLike>(); }

}  // namespace convoy::schedule
