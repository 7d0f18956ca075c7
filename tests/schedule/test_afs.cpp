// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "tests/schedule/queue.h"

using namespace convoy;
using namespace convoy::test;

namespace {

/// Jobs that are given GPUs one by one. A job's throughput on w GPUs is that of the best number up to w, and
/// a job is open while more of them help.
class GivenOneByOne {
 public:
  explicit GivenOneByOne(const std::vector<ActiveJob>& jobs) : gpus(jobs.size(), 0) {
    for (const ActiveJob& job : jobs) {
      left_.push_back(job.left_images);
      std::vector<double>& best = best_.emplace_back(job.job->on(0).packed);
      for (std::size_t w = 1; w < best.size(); ++w) best[w] = std::max(best[w], best[w - 1]);
    }
  }

  std::vector<std::size_t> open() const {
    std::vector<std::size_t> jobs;
    for (std::size_t j = 0; j < gpus.size(); ++j)
      if (now(j) < best_[j].back()) jobs.push_back(j);
    return jobs;
  }
  double length_s(std::size_t j, std::uint32_t w) const {
    return w == 0 ? std::numeric_limits<double>::infinity() : left_[j] / best_[j][w];
  }
  double over_next(std::size_t j) const { return (next(j) - now(j)) / next(j); }
  double over_own(std::size_t j) const { return (next(j) - now(j)) / now(j); }

  /// AFS-L's comparison of two jobs as its statement has it (voda-scheduler's afsl.go and two others agree).
  std::size_t preferred(std::size_t first, std::size_t second) const {
    std::size_t a = first, b = second;
    if (gpus[a] == 0 && gpus[b] == 0) return length_s(a, 1) <= length_s(b, 1) ? a : b;
    if (length_s(a, gpus[a]) > length_s(b, gpus[b])) std::swap(a, b);
    return over_next(b) > over_own(a) ? b : a;
  }

  /// policies.h's rule for all jobs at once.
  std::size_t chosen() const {
    double level = 0;
    for (const std::size_t j : open()) level = std::max(level, over_next(j));
    std::size_t best = gpus.size();
    const auto order = [&](std::size_t j) {
      return std::tuple(gpus[j] == 0, length_s(j, std::max(1u, gpus[j])), left_[j], j);
    };
    for (const std::size_t j : open())
      if (over_own(j) >= level && (best == gpus.size() || order(j) < order(best))) best = j;
    return best;
  }

  /// Without those that do not help.
  std::vector<std::uint32_t> used() const {
    std::vector<std::uint32_t> w = gpus;
    for (std::size_t j = 0; j < w.size(); ++j)
      while (w[j] > 0 && best_[j][w[j] - 1] == best_[j][w[j]]) --w[j];
    return w;
  }

  std::vector<std::uint32_t> gpus;

 private:
  double now(std::size_t j) const { return best_[j][gpus[j]]; }
  double next(std::size_t j) const { return best_[j][gpus[j] + 1]; }
  std::vector<double> left_;
  std::vector<std::vector<double>> best_;
};

std::vector<std::uint32_t> gpu_by_gpu(const std::vector<ActiveJob>& jobs, std::uint32_t gpus) {
  GivenOneByOne sharing(jobs);
  for (; gpus > 0 && !sharing.open().empty(); --gpus) ++sharing.gpus[sharing.chosen()];
  return sharing.used();
}

/// Throughput that grows, shrinks or stays with every GPU.
std::vector<double> any_throughput(std::mt19937& random) {
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  std::vector<double> throughput{0, number(1, 20)};
  for (auto w = static_cast<int>(number(0, 9)); w > 0; --w)
    throughput.push_back(std::max(0.5, throughput.back() + number(-4, 20)));
  return throughput;
}

/// Throughput by whole numbers, so that gains of different jobs are equal and straight pieces are straight.
std::vector<double> stepped_throughput(std::mt19937& random) {
  std::vector<double> throughput{0, 8};
  for (auto w = random() % 12; w > 0; --w)
    throughput.push_back(throughput.back() + static_cast<double>(random() % 9));
  return throughput;
}

/// Between few numbers of GPUs straight lines, as a queue's throughput is read.
std::vector<double> interpolated_throughput(std::mt19937& random, double images_per_s) {
  std::vector<double> throughput{0, images_per_s};
  for (std::size_t from = 1, step = 1; step <= 32; from += step, step *= 2) {
    const double at = throughput.back(),
                 slope = images_per_s * std::uniform_real_distribution<>(0.1, 0.9)(random);
    for (std::size_t w = 1; w <= step; ++w)
      throughput.push_back(at + static_cast<double>(w) / static_cast<double>(step) *
                                    (slope * static_cast<double>(step)));
  }
  return throughput;
}

/// Jobs of a few throughputs.
std::vector<Job> jobs_of_kinds(std::mt19937& random, std::size_t jobs, std::size_t kinds,
                               const std::function<std::vector<double>(std::mt19937&)>& throughput) {
  std::vector<std::shared_ptr<const std::vector<Throughput>>> of;
  for (std::size_t k = 0; k < kinds; ++k) of.push_back(one_kind(throughput(random)));
  std::vector<Job> result;
  for (std::size_t j = 0; j < jobs; ++j)
    result.push_back({"model", 0, 100.0 * static_cast<double>(1 + random() % 40), 1, of[random() % kinds]});
  return result;
}

}  // namespace

TEST_CASE("afs-l: level by level the same as GPU by GPU, on jobs of few and of many throughputs") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t count = 1 + random() % 12;
    const std::vector<Job> jobs = jobs_of_kinds(random, count, 1 + random() % count,
                                                trial % 2 == 0 ? any_throughput : stepped_throughput);
    const auto gpus = static_cast<std::uint32_t>(1 + random() % (6 * count));
    CAPTURE(trial);
    REQUIRE(given(afs_l(), active(jobs), gpus, 0) == gpu_by_gpu(active(jobs), gpus));
  }
}

TEST_CASE("afs-l: level by level the same as GPU by GPU where many jobs share many GPUs") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t count = 50 + random() % 150;
    const std::vector<Job> jobs =
        jobs_of_kinds(random, count, 1 + random() % 6, trial % 2 == 0 ? any_throughput : stepped_throughput);
    const auto gpus = static_cast<std::uint32_t>(1 + random() % (8 * count));
    CAPTURE(trial);
    REQUIRE(given(afs_l(), active(jobs), gpus, 0) == gpu_by_gpu(active(jobs), gpus));
  }
}

TEST_CASE("afs-l: each GPU goes to a job that the comparisons of two prefer in some order of the jobs") {
  std::mt19937 random(3);
  int sure = 0, open_to_order = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<Job> jobs =
        jobs_of_kinds(random, 3 + random() % 3, 4, trial % 2 == 0 ? any_throughput : stepped_throughput);
    GivenOneByOne sharing(active(jobs));
    for (auto gpus = 1 + random() % 30; gpus > 0 && !sharing.open().empty(); --gpus) {
      std::vector<std::size_t> order = sharing.open();
      std::set<std::size_t> preferred;
      do {
        preferred.insert(std::accumulate(
            order.begin() + 1, order.end(), order[0],
            [&](std::size_t best, std::size_t next) { return sharing.preferred(best, next); }));
      } while (std::next_permutation(order.begin(), order.end()));
      REQUIRE(preferred.contains(sharing.chosen()));
      ++(preferred.size() == 1 ? sure : open_to_order);
      ++sharing.gpus[sharing.chosen()];
    }
  }
  CHECK(sure > 1000);  // there the rule is the comparisons', whatever the order
  CHECK(open_to_order > 10);
}

TEST_CASE(
    "afs-l: the unit of throughput does not matter, though straight lines between numbers are rounded") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<std::vector<std::uint32_t>> shares;
    for (const double unit : {1.0, 0.1, 1 / 3.0, 7e-5}) {
      std::mt19937 random(seed);
      std::vector<Job> jobs = jobs_of_kinds(
          random, 30, 4, [unit](std::mt19937& r) { return interpolated_throughput(r, 10 * unit); });
      for (Job& each : jobs) each.images *= 1 + static_cast<double>(random() % 1000) / 1e6;
      shares.push_back(given(afs_l(), active(jobs), 700, 0));
    }
    CAPTURE(seed);
    for (const std::vector<std::uint32_t>& other : shares) CHECK(other == shares.front());
  }
}

TEST_CASE("afs-l: of two jobs and one GPU the shorter gets it") {
  const std::vector<Job> jobs{job(100, 1, {0, 1, 2}), job(50, 1, {0, 1, 2})};
  CHECK(given(afs_l(), active(jobs), 1, 0) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("afs-l: with two GPUs each of two jobs gets one") {
  // The job without one is infinitely long; its gain is (1 - 0) / 1 = 1, the other's (1.8 - 1) / 1.
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.8}), job(50, 1, {0, 1, 1.8})};
  CHECK(given(afs_l(), active(jobs), 2, 0) == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE(
    "afs-l: a third GPU goes where it does more, the longer job's gain counted after, the shorter's before") {
  // Shorter: (1.8 - 1) / 1 = 0.8. Longer: (2 - 1) / 2 = 0.5: the shorter gets it.
  const std::vector<Job> even{job(50, 1, {0, 1, 1.8}), job(100, 1, {0, 1, 2})};
  CHECK(given(afs_l(), active(even), 3, 0) == std::vector<std::uint32_t>{2, 1});
  // Shorter: (1.2 - 1) / 1 = 0.2. Longer: (1.5 - 1) / 1.5 = 0.33: the longer gets it.
  const std::vector<Job> flat{job(50, 1, {0, 1, 1.2}), job(100, 1, {0, 1, 1.5})};
  CHECK(given(afs_l(), active(flat), 3, 0) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("afs-l: a job alone gets all it can use and no more") {
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.5, 1.6})};
  CHECK(given(afs_l(), active(jobs), 8, 0) == std::vector<std::uint32_t>{3});
}

TEST_CASE("afs-l: nobody is given GPUs that slow it down or do nothing") {
  const std::vector<Job> slower{job(100, 1, {0, 1, 1.5, 1.2, 1.5})};
  CHECK(given(afs_l(), active(slower), 8, 0) == std::vector<std::uint32_t>{2});
  // The dip at three GPUs lies on the way to four, which help; with three in all, one stays free.
  const std::vector<Job> dip{job(100, 1, {0, 1, 1.5, 1.2, 3})};
  CHECK(given(afs_l(), active(dip), 4, 0) == std::vector<std::uint32_t>{4});
  CHECK(given(afs_l(), active(dip), 3, 0) == std::vector<std::uint32_t>{2});
}

TEST_CASE("afs-p-like: what a job has been trained on stands for what is left") {
  // Equal throughput that widens badly; one GPU. The one that has done less is taken for the shorter.
  const std::vector<Job> jobs{job(100, 1, {0, 1, 1.1}), job(1000, 1, {0, 1, 1.1})};
  std::vector<ActiveJob> now = active(jobs);
  now[0].left_images = 10;  // has done 90
  CHECK(given(afs_p_like(), now, 1, 0) == std::vector<std::uint32_t>{0, 1});
  CHECK(given(afs_l(), now, 1, 0) == std::vector<std::uint32_t>{1, 0});
}
