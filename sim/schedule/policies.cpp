// SPDX-License-Identifier: MIT
#include "sim/schedule/policies.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace convoy {
namespace {

class AfsL : public Policy {
 public:
  std::string name() const override { return "afs-l"; }

  std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                      double /*now_s*/) const override {
    std::vector<std::uint32_t> given(jobs.size(), 0);
    for (std::uint32_t left = gpus; left > 0; --left) {
      std::size_t best = jobs.size();
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (given[j] == jobs[j].job->most()) continue;
        if (best == jobs.size() || second_preferred(jobs[best], given[best], jobs[j], given[j])) best = j;
      }
      if (best == jobs.size()) break;
      ++given[best];
    }
    return given;
  }

 private:
  static double length_s(const ActiveJob& job, std::uint32_t gpus) {
    return gpus == 0 ? std::numeric_limits<double>::infinity() : job.remaining_s(gpus);
  }

  static bool second_preferred(const ActiveJob& first, std::uint32_t first_gpus, const ActiveJob& second,
                               std::uint32_t second_gpus) {
    if (first_gpus == 0 && second_gpus == 0) return second.remaining_s(1) < first.remaining_s(1);
    const bool swapped = length_s(second, second_gpus) < length_s(first, first_gpus);
    const ActiveJob& shorter = swapped ? second : first;
    const ActiveJob& longer = swapped ? first : second;
    const std::uint32_t s = swapped ? second_gpus : first_gpus, l = swapped ? first_gpus : second_gpus;
    const std::vector<double>& ps = shorter.job->throughput;
    const std::vector<double>& pl = longer.job->throughput;
    const bool longer_preferred = (pl[l + 1] - pl[l]) / pl[l + 1] > (ps[s + 1] - ps[s]) / ps[s];
    return longer_preferred != swapped;
  }
};

/// Jobs by rank, lowest first and equal ones in the order of arrival; each gets all it asks for while there
/// are so many GPUs left, or nothing.
template <class Rank>
std::vector<std::uint32_t> in_order(const std::vector<ActiveJob>& jobs, std::uint32_t gpus, Rank rank) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> ranks;
  for (const ActiveJob& job : jobs) ranks.push_back(rank(job));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
  std::vector<std::uint32_t> given(jobs.size(), 0);
  for (const std::size_t j : order) {
    if (jobs[j].job->asked > gpus) continue;
    given[j] = jobs[j].job->asked;
    gpus -= given[j];
  }
  return given;
}

class Srtf : public Policy {
 public:
  std::string name() const override { return "srtf"; }
  std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                      double /*now_s*/) const override {
    return in_order(jobs, gpus, [](const ActiveJob& job) { return job.remaining_s(job.job->asked); });
  }
};

class TiresiasL : public Policy {
 public:
  std::string name() const override { return "tiresias-l"; }
  std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                      double /*now_s*/) const override {
    return in_order(jobs, gpus, [](const ActiveJob& job) {
      constexpr std::array bounds_gpu_s{3250.0, 7200.0, 18000.0};
      return static_cast<double>(
          std::upper_bound(bounds_gpu_s.begin(), bounds_gpu_s.end(), job.served_gpu_s) -
          bounds_gpu_s.begin());
    });
  }
  double interval_s() const override { return 60; }  // so that jobs sink when they cross a bound
};

class ThemisLike : public Policy {
 public:
  std::string name() const override { return "themis-like"; }
  std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                      double now_s) const override {
    return in_order(jobs, gpus, [now_s](const ActiveJob& job) {
      const double shared_s = now_s - job.job->arrival_s + job.remaining_s(job.job->asked);
      return -shared_s / job.fair_finish_s;
    });
  }
  double interval_s() const override { return 20 * 60; }
};

}  // namespace

std::unique_ptr<Policy> afs_l() { return std::make_unique<AfsL>(); }
std::unique_ptr<Policy> srtf() { return std::make_unique<Srtf>(); }
std::unique_ptr<Policy> tiresias_l() { return std::make_unique<TiresiasL>(); }
std::unique_ptr<Policy> themis_like() { return std::make_unique<ThemisLike>(); }

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"afs-l", "tiresias-l", "srtf", "themis-like"};
  return names;
}

std::unique_ptr<Policy> make_policy(const std::string& name) {
  for (auto make : {&afs_l, &tiresias_l, &srtf, &themis_like})
    if (std::unique_ptr<Policy> policy = make(); policy->name() == name) return policy;
  return nullptr;
}

}  // namespace convoy
