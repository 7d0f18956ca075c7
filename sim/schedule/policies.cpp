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
    std::vector<std::uint32_t> given(jobs.size(), 0), useful;
    std::uint64_t wanted = 0;
    for (const ActiveJob& job : jobs) wanted += useful.emplace_back(job.job->best_of(job.job->most()));
    if (wanted <= gpus) return useful;  // enough for all: every order of giving ends there
    std::vector<Offer> offers;
    for (const ActiveJob& job : jobs) offers.emplace_back(job);
    for (std::uint32_t left = gpus; left > 0; --left) {
      std::size_t best = jobs.size();
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (offers[j].gpus == useful[j]) continue;
        if (best == jobs.size() || second_preferred(offers[best], offers[j])) best = j;
      }
      if (best == jobs.size()) break;
      ++offers[best].gpus;
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) given[j] = jobs[j].job->best_of(offers[j].gpus);
    return given;
  }

 private:
  /// GPUs given so far, and images/s of the best number of GPUs up to each.
  struct Offer {
    explicit Offer(const ActiveJob& of) : left_images(of.left_images), reached(of.job->throughput) {
      for (std::size_t w = 1; w < reached.size(); ++w) reached[w] = std::max(reached[w], reached[w - 1]);
    }
    double left_images;
    std::vector<double> reached;
    std::uint32_t gpus = 0;
    double length_s(std::uint32_t on) const {
      return on == 0 ? std::numeric_limits<double>::infinity() : left_images / reached[on];
    }
  };

  static bool second_preferred(const Offer& first, const Offer& second) {
    if (first.gpus == 0 && second.gpus == 0) return second.length_s(1) < first.length_s(1);
    const bool swapped = second.length_s(second.gpus) < first.length_s(first.gpus);
    const Offer& shorter = swapped ? second : first;
    const Offer& longer = swapped ? first : second;
    const std::vector<double>&ps = shorter.reached, &pl = longer.reached;
    const std::uint32_t s = shorter.gpus, l = longer.gpus;
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
  // Every minute, so that jobs sink when they cross a bound.
  double next_decision_s(const std::vector<ActiveJob>& /*jobs*/, double now_s) const override { return now_s + 60; }
};

class ThemisLike : public Policy {
 public:
  std::string name() const override { return "themis-like"; }
  std::vector<std::uint32_t> allocate(const std::vector<ActiveJob>& jobs, std::uint32_t gpus,
                                      double now_s) const override {
    return in_order(jobs, gpus, [&](const ActiveJob& job) {
      if (leased(job, now_s)) return -std::numeric_limits<double>::infinity();
      const double shared_s = now_s - job.job->arrival_s + job.remaining_s(job.job->asked);
      return -shared_s / job.fair_finish_s;
    });
  }
  double lease_s() const override { return 20 * 60; }
  double next_decision_s(const std::vector<ActiveJob>& jobs, double now_s) const override {
    double next_s = std::numeric_limits<double>::infinity();
    for (const ActiveJob& job : jobs)
      if (leased(job, now_s)) next_s = std::min(next_s, job.granted_s + lease_s());
    return next_s;
  }

 private:
  bool leased(const ActiveJob& job, double now_s) const {
    return job.gpus > 0 && now_s < job.granted_s + lease_s();
  }
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
