// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/schedule/job_trace.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

JobTraceOptions options(std::size_t jobs) {
  JobTraceOptions result;
  result.jobs = jobs;
  result.mean_interval_s = 60;
  result.median_length_s = 1800;
  result.spread = 1.5;
  result.asked = {1, 2, 8};
  result.asked_weights = {3, 1, 1};
  return result;
}

const std::vector<JobKind> kinds{{"small", {{{0, 10, 19, 27, 33}}}},
                                 {"large", {{{0, 5, 10, 15, 20, 25, 30, 35, 40}}}}};

}  // namespace

TEST_CASE("job trace: the same seed gives the same jobs, another one others") {
  const std::vector<Job> a = make_job_trace(kinds, options(50)), b = make_job_trace(kinds, options(50));
  JobTraceOptions other = options(50);
  other.seed = 2;
  const std::vector<Job> c = make_job_trace(kinds, other);
  for (std::size_t j = 0; j < 50; ++j) {
    CHECK(a[j].arrival_s == b[j].arrival_s);
    CHECK(a[j].images == b[j].images);
  }
  CHECK(a[9].images != c[9].images);
}

TEST_CASE("job trace: intervals, lengths and numbers of GPUs are distributed as asked") {
  const std::vector<Job> jobs = make_job_trace(kinds, options(20000));
  // 20,000 exponential intervals of mean 60 s: standard error 0.42 s
  CHECK(jobs.back().arrival_s / 19999 == approx(60).epsilon(0.03));
  std::vector<double> logarithms;
  std::size_t one = 0, small = 0;
  for (const Job& job : jobs) {
    logarithms.push_back(std::log(job.images / job.on(0).packed[job.asked]));
    one += job.asked == 1;
    small += job.model == "small";
  }
  std::sort(logarithms.begin(), logarithms.end());
  CHECK(std::exp(logarithms[10000]) == approx(1800).epsilon(0.05));
  // one standard deviation above the median: 84.13 % are below
  CHECK(logarithms[16827] - logarithms[10000] == approx(1.5).epsilon(0.04));
  CHECK(static_cast<double>(one) / 20000 == approx(0.6).epsilon(0.03));
  CHECK(static_cast<double>(small) / 20000 == approx(0.5).epsilon(0.03));
}

TEST_CASE("job trace: jobs arrive in order and ask for no more than they can use") {
  const std::vector<Job> jobs = make_job_trace(kinds, options(500));
  for (std::size_t j = 1; j < jobs.size(); ++j) CHECK(jobs[j].arrival_s >= jobs[j - 1].arrival_s);
  for (const Job& job : jobs) CHECK(job.asked <= job.on(0).most());
}

TEST_CASE("job trace: recorded jobs come by arrival, with the length they had on what they asked for") {
  const std::vector<Job> jobs =
      make_job_trace(kinds, {{30, 2, 100, "large"}, {10, 16, 50, "small", 400.0}}, 1);
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].model == "small");
  CHECK(jobs[0].asked == 4);  // what it can use
  CHECK(jobs[0].images == 50 * 33);
  CHECK(jobs[0].deadline_s == 400);
  CHECK(jobs[1].images == 100 * 10);
  CHECK(jobs[1].deadline_s == std::numeric_limits<double>::infinity());
  CHECK_THROWS_WITH(make_job_trace(kinds, {{0, 1, 1, "bert"}}, 1), "the sweep has no runs of bert");
}

TEST_CASE("job trace: deadlines lie evenly between multiples of the lengths, and jobs stay the same") {
  std::vector<Job> jobs = make_job_trace(kinds, options(5000));
  const std::vector<Job> before = jobs;
  draw_deadlines(jobs, {0.5, 1.5}, 1);
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    CHECK(jobs[j].images == before[j].images);
    const double factor =
        (jobs[j].deadline_s - jobs[j].arrival_s) * jobs[j].on(0).packed[jobs[j].asked] / jobs[j].images;
    CHECK(factor >= approx(0.5).epsilon(1e-6));
    CHECK(factor <= approx(1.5).epsilon(1e-6));
    sum += factor;
  }
  CHECK(sum / 5000 == approx(1).epsilon(0.02));  // standard error 0.004
}

TEST_CASE("workload: GPUs, classes and hours of arrival are distributed as recorded") {
  // Three of four jobs are small; two of four arrive in the first hour, none in the second, the others in the
  // third.
  constexpr double hour_s = 3600;
  const std::vector<WorkloadJob> like{
      {0, 1, 60, 3600}, {3000, 1, 60, 3600}, {8000, 1, 60, 3600}, {9000, 8, 36000, 360000}};
  CHECK(workload_window_s(like) == 3 * hour_s);
  constexpr std::size_t many = 20000;
  const std::vector<TracedJob> jobs = draw_workload(like, many, 1);
  REQUIRE(jobs.size() == many);
  double small = 0, first_hour = 0, below_middle = 0;
  for (const TracedJob& job : jobs) {
    const double gpu_s = job.length_s * job.asked;
    CHECK((job.asked == 1 ? gpu_s >= 60 && gpu_s <= 3600 : gpu_s >= 36000 && gpu_s <= 360000));
    CHECK((job.arrival_s < hour_s || (job.arrival_s >= 2 * hour_s && job.arrival_s < 3 * hour_s)));
    small += job.asked == 1;
    first_hour += job.arrival_s < hour_s;
    below_middle += job.asked == 1 && gpu_s < std::sqrt(60.0 * 3600);  // of the logarithm
  }
  // Standard errors are 0.3 to 0.4 %.
  CHECK(small / many == approx(0.75).epsilon(0.02));
  CHECK(first_hour / many == approx(0.5).epsilon(0.025));
  CHECK(below_middle / small == approx(0.5).epsilon(0.03));
  const std::vector<TracedJob> again = draw_workload(like, 50, 1), others = draw_workload(like, 50, 2);
  for (std::size_t j = 0; j < 50; ++j) CHECK(again[j].length_s == jobs[j].length_s);
  CHECK(others[3].length_s != again[3].length_s);
}
