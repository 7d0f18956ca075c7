// SPDX-License-Identifier: MIT
// What policies keep from one decision to the next decides as looking at all jobs anew does.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/schedule/schedule.h"
#include "tests/schedule/queue.h"

using namespace convoy;
using namespace convoy::test;

namespace {

/// Decides as another policy does that has just been started and has seen nothing before.
class StartedAnew : public DecidesAnew {
 public:
  explicit StartedAnew(const Policy& policy) : policy_(policy) { pause_s = policy.pause_s; }
  std::string name() const override { return policy_.name(); }
  double next_decision_s(const ArrivedJobs& jobs, double now_s) const override {
    return policy_.next_decision_s(jobs, now_s);
  }
  double lease_s() const override { return policy_.lease_s(); }
  bool admits(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools, double now_s) const override {
    return policy_.admits(jobs, pools, now_s);
  }

 protected:
  std::vector<Allocation> decide(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                 double now_s) const override {
    return policy_.allocate(jobs, pools, now_s);
  }

 private:
  const Policy& policy_;
};

/// Jobs of a few models, on up to as many GPUs as pools have, on every pool or on one of them. Some arrive
/// together and some are equally long.
std::vector<Job> random_queue(std::mt19937& random, std::size_t count, const std::vector<GpuPool>& pools,
                              double mean_interval_s) {
  std::vector<std::shared_ptr<const std::vector<Throughput>>> models;
  for (int m = 0; m < 4; ++m) {
    std::vector<Throughput> on_pools;
    for (const GpuPool& pool : pools) {
      Throughput& on = on_pools.emplace_back(Throughput{{0}});
      for (std::uint32_t w = 1; w <= pool.gpus; ++w)
        on.packed.push_back(std::max(0.5, on.packed.back() + static_cast<double>(random() % 9) - 1));
    }
    models.push_back(std::make_shared<const std::vector<Throughput>>(on_pools));
  }
  std::uint32_t most = pools[0].gpus;
  for (const GpuPool& pool : pools) most = std::min(most, pool.gpus);
  std::vector<Job> jobs;
  double now_s = 0;
  for (std::size_t j = 0; j < count; ++j) {
    if (random() % 4 != 0) now_s += std::exponential_distribution<>(1 / mean_interval_s)(random);
    const double images = std::exp(std::normal_distribution<>(7, 1.5)(random));
    jobs.push_back({"model", now_s, random() % 3 == 0 ? 1000 : images,
                    static_cast<std::uint32_t>(1 + random() % most), models[random() % models.size()]});
    if (random() % 2 == 0) jobs.back().deadline_s = now_s + static_cast<double>(random() % 2000);
  }
  return jobs;
}

}  // namespace

TEST_CASE("schedule: what policies keep between decisions changes no bit of what comes out") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const bool two_kinds = seed % 3 == 2;
    std::vector<GpuPool> pools{{static_cast<std::uint32_t>(4 * (1 + random() % 4)), seed % 2 == 0 ? 0u : 4u}};
    if (two_kinds) pools.push_back({8, pools[0].gpus_per_host});
    // From a queue that hardly ever waits to one in which most jobs wait.
    const double mean_interval_s = std::vector{400.0, 60.0, 5.0}[seed / 4];
    const std::vector<Job> jobs = random_queue(random, 120, pools, mean_interval_s);
    for (const char* name :
         {"afs-l", "afs-p-like", "optimus-like", "tiresias-l", "srtf", "themis-like", "edf"}) {
      const std::unique_ptr<Policy> policy = make_policy(name);
      if (two_kinds && !policy->several_kinds()) continue;
      CAPTURE(seed);
      CAPTURE(name);
      const ScheduleOptions options{pools, seed % 4 == 0 ? 0.0 : 7.5};
      const ScheduleOutcome kept = run_schedule(jobs, *policy, options);
      const ScheduleOutcome anew = run_schedule(jobs, StartedAnew(*policy), options);
      CHECK(kept.completion_s == anew.completion_s);
      CHECK(kept.makespan_s == anew.makespan_s);
      CHECK(kept.busy_share == anew.busy_share);
      CHECK(kept.changes == anew.changes);
      CHECK(kept.scattered_share == anew.scattered_share);
      CHECK(kept.deadlines_met == anew.deadlines_met);
    }
  }
}

TEST_CASE("schedule: an order of jobs stays sorted while they come, go and change") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    JobOrder order;
    std::vector<JobOrder::Entry> expected;  // in no order
    for (std::size_t step = 0; step < 300; ++step) {
      const auto figure = static_cast<double>(random() % 20);
      const std::size_t which = expected.empty() ? 0 : random() % expected.size();
      if (expected.empty() || random() % 3 == 0) {
        order.insert({figure, step});
        expected.push_back({figure, step});
      } else if (random() % 3 == 0) {
        order.erase(expected[which]);
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        order.change(expected[which], figure);
        expected[which].figure = figure;
      }
      std::vector<std::pair<double, std::size_t>> has, sorted;
      for (const JobOrder::Entry& entry : order.entries()) has.emplace_back(entry.figure, entry.job);
      for (const JobOrder::Entry& entry : expected) sorted.emplace_back(entry.figure, entry.job);
      std::sort(sorted.begin(), sorted.end());
      REQUIRE(has == sorted);
    }
  }
}
