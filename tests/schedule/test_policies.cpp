// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "tests/schedule/queue.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::test;

TEST_CASE("srtf: the shortest first, what does not fit waits, later ones may pass it") {
  const std::vector<Job> jobs{job(400, 2, {0, 1, 2, 3, 4}), job(30, 3, {0, 1, 2, 3}), job(100, 1, {0, 1})};
  // 200 s, 10 s, 100 s on 4 GPUs: the second takes 3, the third 1, nothing is left for the first
  CHECK(given(srtf(), active(jobs), 4, 0) == std::vector<std::uint32_t>{0, 3, 1});
  CHECK(given(srtf(), active(jobs), 3, 0) == std::vector<std::uint32_t>{0, 3, 0});
  CHECK(given(srtf(), active(jobs), 2, 0) == std::vector<std::uint32_t>{0, 0, 1});
}

TEST_CASE("tiresias-l: jobs sink a queue with each bound of service, and come in order inside one") {
  const std::vector<Job> jobs{job(1, 1, {0, 1}), job(1, 1, {0, 1}), job(1, 1, {0, 1})};
  std::vector<ActiveJob> now = active(jobs);
  now[0].served_gpu_s = 3250;  // has reached the first bound
  now[1].served_gpu_s = 3249;
  now[2].served_gpu_s = 0;
  CHECK(given(tiresias_l(), now, 1, 0) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(given(tiresias_l(), now, 2, 0) == std::vector<std::uint32_t>{0, 1, 1});
}

TEST_CASE("themis-like: the least fairly treated first") {
  const std::vector<Job> jobs{job(100, 1, {0, 1}, 0), job(10, 1, {0, 1}, 50)};
  std::vector<ActiveJob> now = active(jobs);
  now[0].fair_finish_s = 100;  // at 60 s: (60 + 100) / 100 = 1.6
  now[1].fair_finish_s = 10;   // (10 + 10) / 10 = 2
  CHECK(given(themis_like(), now, 1, 60) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("themis-like: who has GPUs keeps them until its lease of 20 minutes is over") {
  const std::vector<Job> jobs{job(100000, 1, {0, 1}, 0), job(10, 1, {0, 1}, 50)};
  std::vector<ActiveJob> now = active(jobs);
  now[0].held = {0, 1};
  now[0].granted_s = 100;
  now[0].fair_finish_s = 100000;
  now[1].fair_finish_s = 10;
  const auto policy = themis_like();
  CHECK(given(policy, now, 1, 1299) == std::vector<std::uint32_t>{1, 0});
  CHECK(given(policy, now, 1, 1300) == std::vector<std::uint32_t>{0, 1});
  CHECK(policy->next_decision_s(ArrivedJobs(now), 1299) == 1300);
}

TEST_CASE("optimus-like: each a GPU, the shortest first, then where most seconds are saved") {
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.5, 1.9}), job(1000, 1, {0, 1, 1.5, 1.9}),
                              job(50, 1, {0, 1, 2, 3})};
  CHECK(given(optimus_like(), active(jobs), 2, 0) == std::vector<std::uint32_t>{1, 0, 1});
  CHECK(given(optimus_like(), active(jobs), 3, 0) == std::vector<std::uint32_t>{1, 1, 1});
  // One more saves 33 s of the first, 333 s of the second, 25 s of the third.
  CHECK(given(optimus_like(), active(jobs), 4, 0) == std::vector<std::uint32_t>{1, 2, 1});
  CHECK(given(optimus_like(), active(jobs), 6, 0) == std::vector<std::uint32_t>{2, 3, 1});
}

TEST_CASE("optimus-like: no other shares leave less time in all, by all shares of small cases") {
  std::mt19937 random(11);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Job> jobs;
    for (int j = 0; j < 3; ++j) {  // times on w GPUs fall by less and less
      const double fixed = number(0.1, 1), shared = number(0.1, 2);
      std::vector<double> throughput{0};
      for (int w = 1; w <= 5; ++w) throughput.push_back(1 / (fixed + shared / w));
      jobs.push_back(job(number(1, 100), 1, throughput));
    }
    const auto gpus = static_cast<std::uint32_t>(number(3, 15));
    const auto time = [&](const std::vector<std::uint32_t>& w) {
      double sum = 0;
      for (std::size_t j = 0; j < 3; ++j) sum += jobs[j].images / jobs[j].on(0).packed[w[j]];
      return sum;
    };
    double least = 1e99;
    for (std::uint32_t a = 1; a <= 5; ++a)
      for (std::uint32_t b = 1; b <= 5; ++b)
        for (std::uint32_t c = 1; c <= 5 && a + b + c <= gpus; ++c) least = std::min(least, time({a, b, c}));
    CHECK(time(given(optimus_like(), active(jobs), gpus, 0)) == approx(least).epsilon(1e-9));
  }
}

TEST_CASE("edf: the earliest deadline first") {
  std::vector<Job> jobs{job(10, 1, {0, 1}), job(10, 1, {0, 1})};
  jobs[0].deadline_s = 50;
  jobs[1].deadline_s = 40;
  CHECK(given(edf(), active(jobs), 1, 0) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("elasticflow-like: the fewest GPUs that keep each deadline, the rest where it helps most") {
  std::vector<Job> jobs{job(100, 1, {0, 1, 2, 3, 4}), job(60, 1, {0, 1, 1.2, 1.3, 1.35})};
  jobs[0].deadline_s = 50;
  jobs[1].deadline_s = 60;
  // 100 images in 50 s need 2; 60 in 60 s need 1; the fourth raises the first by a third, the second by a
  // sixth.
  CHECK(given(elasticflow_like(), active(jobs), 3, 0) == std::vector<std::uint32_t>{2, 1});
  CHECK(given(elasticflow_like(), active(jobs), 4, 0) == std::vector<std::uint32_t>{3, 1});
  // On 2 GPUs the first has both until 50 s; then 10 s are too few for the second.
  CHECK_FALSE(elasticflow_like()->admits(ArrivedJobs(active(jobs)), {{2}}, 0));
  CHECK(elasticflow_like()->admits(ArrivedJobs(active(jobs)), {{3}}, 0));
}

TEST_CASE("pollux-like: the mean of 1 / speedup is least, by all shares of small cases") {
  std::mt19937 random(5);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Job> jobs;
    for (int j = 0; j < 3; ++j) {
      const double fixed = number(0.1, 1), shared = number(0.1, 2);
      std::vector<double> throughput{0};
      for (int w = 1; w <= 5; ++w) throughput.push_back(1 / (fixed + shared / w));
      jobs.push_back(job(number(1, 100), 1, throughput));
    }
    const auto gpus = static_cast<std::uint32_t>(number(3, 15));
    const auto cost = [&](const std::vector<std::uint32_t>& w) {
      double sum = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        const std::vector<double>& p = jobs[j].on(0).packed;
        sum += p[std::min<std::uint32_t>(5, std::max(1u, gpus / 3))] / p[w[j]];
      }
      return sum;
    };
    double least = 1e99;
    for (std::uint32_t a = 1; a <= 5; ++a)
      for (std::uint32_t b = 1; b <= 5; ++b)
        for (std::uint32_t c = 1; c <= 5 && a + b + c <= gpus; ++c) least = std::min(least, cost({a, b, c}));
    CHECK(cost(given(pollux_like(), active(jobs), gpus, 0)) == approx(least).epsilon(1e-9));
  }
}

TEST_CASE("sia-like: jobs get the kind of GPU that they gain most from") {
  // The first is 10 times faster on the second kind, the other hardly.
  const auto kinds = [](std::vector<Throughput> of) {
    return std::make_shared<const std::vector<Throughput>>(std::move(of));
  };
  const std::vector<Job> jobs{{"a", 0, 100, 1, kinds({{{0, 1}}, {{0, 10}}})},
                              {"b", 0, 100, 1, kinds({{{0, 1}}, {{0, 1.2}}})}};
  const std::vector<Allocation> given = sia_like()->allocate(active(jobs), {{1}, {1}}, 0);
  CHECK(given[0] == Allocation{1, 1});
  CHECK(given[1] == Allocation{0, 1});
}

TEST_CASE("sia-like: a job stays where it is if a change costs more than it gains") {
  const auto kinds =
      std::make_shared<const std::vector<Throughput>>(std::vector<Throughput>{{{0, 10}}, {{0, 11}}});
  const std::vector<Job> jobs{{"a", 0, 10000, 1, kinds}};
  std::vector<ActiveJob> now = active(jobs);
  now[0].held = {0, 1};
  const auto policy = sia_like();
  policy->pause_s = 30;
  CHECK(policy->allocate(now, {{1}, {1}}, 100)[0] == Allocation{0, 1});   // 100 / 130 of 11 is less than 10
  CHECK(policy->allocate(now, {{1}, {1}}, 1000)[0] == Allocation{1, 1});  // 1000 / 1030 of 11 is more
}

TEST_CASE("policies: each is made by its name") {
  for (const std::string& name : policy_names()) CHECK(make_policy(name)->name() == name);
  CHECK(make_policy("fifo") == nullptr);
}
