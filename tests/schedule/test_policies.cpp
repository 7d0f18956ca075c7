// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "sim/schedule/policies.h"

using namespace convoy;

namespace {

Job job(double images, std::uint32_t asked, std::vector<double> throughput, double arrival_s = 0) {
  return {"model", arrival_s, images, asked, std::move(throughput)};
}

std::vector<ActiveJob> active(const std::vector<Job>& jobs) {
  std::vector<ActiveJob> result;
  for (const Job& j : jobs) result.push_back({&j, j.images, 0, 1, 0});
  return result;
}

/// AFS-L word for word: a table of allocations, jobs with room left in a list, and the comparison with a and
/// b as its statement has them (papers: voda-scheduler's afsl.go and two others agree). A job's throughput on w
/// GPUs is that of the best number up to w, and room is left while more of them help.
std::vector<std::uint32_t> literal_afs_l(const std::vector<ActiveJob>& jobs, std::uint32_t gpus) {
  const auto p = [&](std::size_t j, std::uint32_t w) {
    double best = 0;
    for (std::uint32_t k = 1; k <= w; ++k) best = std::max(best, jobs[j].job->throughput.at(k));
    return best;
  };
  const auto length = [&](std::size_t j, std::uint32_t w) {
    return w == 0 ? std::numeric_limits<double>::infinity() : jobs[j].left_images / p(j, w);
  };
  std::vector<std::uint32_t> w(jobs.size(), 0);
  std::uint32_t used = 0;
  while (used < gpus) {
    std::vector<std::size_t> open;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      if (p(j, w[j]) < p(j, static_cast<std::uint32_t>(jobs[j].job->throughput.size() - 1))) open.push_back(j);
    if (open.empty()) break;
    std::size_t star = open[0];
    for (std::size_t i = 1; i < open.size(); ++i) {
      std::size_t a = star, b = open[i];
      if (w[a] == 0 && w[b] == 0) {
        star = length(a, 1) <= length(b, 1) ? a : b;
        continue;
      }
      if (length(a, w[a]) > length(b, w[b])) std::swap(a, b);
      const double gain_b = (p(b, w[b] + 1) - p(b, w[b])) / p(b, w[b] + 1);
      const double gain_a = (p(a, w[a] + 1) - p(a, w[a])) / p(a, w[a]);
      star = gain_b > gain_a ? b : a;
    }
    ++w[star];
    ++used;
  }
  for (std::size_t j = 0; j < jobs.size(); ++j)
    while (w[j] > 0 && p(j, w[j] - 1) == p(j, w[j])) --w[j];
  return w;
}

}  // namespace

TEST_CASE("afs-l: the same as its literal statement on random jobs") {
  std::mt19937 random(7);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<Job> jobs;
    const auto count = static_cast<int>(number(1, 9));
    for (int j = 0; j < count; ++j) {
      std::vector<double> throughput{0};
      const auto most = static_cast<int>(number(1, 9));
      for (int w = 1; w <= most; ++w)
        throughput.push_back(throughput.back() + number(-2, 20) + (w == 1 ? 5 : 0));
      for (double& p : throughput) p = std::max(p, &p == &throughput[0] ? 0.0 : 0.5);
      jobs.push_back(job(number(1, 1000), 1, throughput));
    }
    const auto gpus = static_cast<std::uint32_t>(number(1, 30));
    REQUIRE(afs_l()->allocate(active(jobs), gpus, 0) == literal_afs_l(active(jobs), gpus));
  }
}

TEST_CASE("afs-l: of two jobs and one GPU the shorter gets it") {
  const std::vector<Job> jobs{job(100, 1, {0, 1, 2}), job(50, 1, {0, 1, 2})};
  CHECK(afs_l()->allocate(active(jobs), 1, 0) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("afs-l: with two GPUs each of two jobs gets one") {
  // The job without one is infinitely long; its gain is (1 - 0) / 1 = 1, the other's (1.8 - 1) / 1.
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.8}), job(50, 1, {0, 1, 1.8})};
  CHECK(afs_l()->allocate(active(jobs), 2, 0) == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE(
    "afs-l: a third GPU goes where it does more, the longer job's gain counted after, the shorter's before") {
  // Shorter: (1.8 - 1) / 1 = 0.8. Longer: (2 - 1) / 2 = 0.5: the shorter gets it.
  const std::vector<Job> even{job(50, 1, {0, 1, 1.8}), job(100, 1, {0, 1, 2})};
  CHECK(afs_l()->allocate(active(even), 3, 0) == std::vector<std::uint32_t>{2, 1});
  // Shorter: (1.2 - 1) / 1 = 0.2. Longer: (1.5 - 1) / 1.5 = 0.33: the longer gets it.
  const std::vector<Job> flat{job(50, 1, {0, 1, 1.2}), job(100, 1, {0, 1, 1.5})};
  CHECK(afs_l()->allocate(active(flat), 3, 0) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("afs-l: a job alone gets all it can use and no more") {
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.5, 1.6})};
  CHECK(afs_l()->allocate(active(jobs), 8, 0) == std::vector<std::uint32_t>{3});
}

TEST_CASE("afs-l: nobody is given GPUs that slow it down or do nothing") {
  const std::vector<Job> slower{job(100, 1, {0, 1, 1.5, 1.2, 1.5})};
  CHECK(afs_l()->allocate(active(slower), 8, 0) == std::vector<std::uint32_t>{2});
  // The dip at three GPUs lies on the way to four, which help; with three in all, one stays free.
  const std::vector<Job> dip{job(100, 1, {0, 1, 1.5, 1.2, 3})};
  CHECK(afs_l()->allocate(active(dip), 4, 0) == std::vector<std::uint32_t>{4});
  CHECK(afs_l()->allocate(active(dip), 3, 0) == std::vector<std::uint32_t>{2});
}

TEST_CASE("srtf: the shortest first, what does not fit waits, later ones may pass it") {
  const std::vector<Job> jobs{job(400, 2, {0, 1, 2, 3, 4}), job(30, 3, {0, 1, 2, 3}), job(100, 1, {0, 1})};
  // 200 s, 10 s, 100 s on 4 GPUs: the second takes 3, the third 1, nothing is left for the first
  CHECK(srtf()->allocate(active(jobs), 4, 0) == std::vector<std::uint32_t>{0, 3, 1});
  CHECK(srtf()->allocate(active(jobs), 3, 0) == std::vector<std::uint32_t>{0, 3, 0});
  CHECK(srtf()->allocate(active(jobs), 2, 0) == std::vector<std::uint32_t>{0, 0, 1});
}

TEST_CASE("tiresias-l: jobs sink a queue with each bound of service, and come in order inside one") {
  const std::vector<Job> jobs{job(1, 1, {0, 1}), job(1, 1, {0, 1}), job(1, 1, {0, 1})};
  std::vector<ActiveJob> now = active(jobs);
  now[0].served_gpu_s = 3250;  // has reached the first bound
  now[1].served_gpu_s = 3249;
  now[2].served_gpu_s = 0;
  CHECK(tiresias_l()->allocate(now, 1, 0) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(tiresias_l()->allocate(now, 2, 0) == std::vector<std::uint32_t>{0, 1, 1});
}

TEST_CASE("themis-like: the least fairly treated first") {
  const std::vector<Job> jobs{job(100, 1, {0, 1}, 0), job(10, 1, {0, 1}, 50)};
  std::vector<ActiveJob> now = active(jobs);
  now[0].fair_finish_s = 100;  // at 60 s: (60 + 100) / 100 = 1.6
  now[1].fair_finish_s = 10;   // (10 + 10) / 10 = 2
  CHECK(themis_like()->allocate(now, 1, 60) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("themis-like: who has GPUs keeps them until its lease of 20 minutes is over") {
  const std::vector<Job> jobs{job(100000, 1, {0, 1}, 0), job(10, 1, {0, 1}, 50)};
  std::vector<ActiveJob> now = active(jobs);
  now[0].gpus = 1;
  now[0].granted_s = 100;
  now[0].fair_finish_s = 100000;
  now[1].fair_finish_s = 10;
  const auto policy = themis_like();
  CHECK(policy->allocate(now, 1, 1299) == std::vector<std::uint32_t>{1, 0});
  CHECK(policy->allocate(now, 1, 1300) == std::vector<std::uint32_t>{0, 1});
  CHECK(policy->next_decision_s(now, 1299) == 1300);
}

TEST_CASE("policies: each is made by its name") {
  for (const std::string& name : policy_names()) CHECK(make_policy(name)->name() == name);
  CHECK(make_policy("fifo") == nullptr);
}
