// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/schedule/schedule.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

Job linear(double images, std::uint32_t asked, double arrival_s, std::uint32_t most = 4) {
  Throughput throughput;
  for (std::uint32_t w = 0; w <= most; ++w) throughput.packed.push_back(w);
  return {"model", arrival_s, images, asked,
          std::make_shared<const std::vector<Throughput>>(std::vector{throughput})};
}

std::shared_ptr<const std::vector<Throughput>> kinds_of(std::vector<Throughput> of) {
  return std::make_shared<const std::vector<Throughput>>(std::move(of));
}

}  // namespace

TEST_CASE("schedule: a job alone takes its images over its throughput") {
  const ScheduleOutcome outcome = run_schedule({linear(100, 2, 10)}, *srtf(), {{{4}}, 5});
  CHECK(outcome.completion_s == std::vector<double>{50});
  CHECK(outcome.makespan_s == 60);
  CHECK(outcome.busy_share == approx(2 * 50.0 / (60 * 4)));
  CHECK(outcome.changes == 0);
}

TEST_CASE("schedule: under srtf a short job stops a long one, which then goes on after its pause") {
  // One GPU. The long one runs 0 to 20; the short one 20 to 30; the long one pauses to 33 and ends at 113.
  const std::vector<Job> jobs{linear(100, 1, 0), linear(10, 1, 20)};
  const ScheduleOutcome outcome = run_schedule(jobs, *srtf(), {{{1}}, 3});
  CHECK(outcome.completion_s[1] == approx(10));
  CHECK(outcome.completion_s[0] == approx(113));
  CHECK(outcome.changes == 2);
  CHECK(outcome.mean_completion_s() == approx(61.5));
}

TEST_CASE("schedule: afs-l gives a job what another leaves, with pauses") {
  // Two GPUs, linear jobs of 100 and 40 images. One each (a job without GPUs gains 1, the other 1: the
  // shorter is kept only on a tie, so the first GPU's owner, the shorter, takes both).
  const std::vector<Job> jobs{linear(100, 1, 0), linear(40, 1, 0)};
  const ScheduleOutcome outcome = run_schedule(jobs, *afs_l(), {{{2}}, 0});
  CHECK(outcome.completion_s[1] == approx(20));
  CHECK(outcome.completion_s[0] == approx(20 + 50));
}

TEST_CASE("schedule: afs-l with less than linear jobs shares, then widens, with a pause") {
  // p(1) = 1, p(2) = 1.5: one GPU each; the short one ends at 40, the long one has 60 left: 2 s pause and 40
  // s.
  Job a = linear(100, 1, 0), b = linear(40, 1, 0);
  a.kinds = b.kinds = kinds_of({{{0, 1, 1.5}}});
  const ScheduleOutcome outcome = run_schedule({a, b}, *afs_l(), {{{2}}, 2});
  CHECK(outcome.completion_s[1] == approx(40));
  CHECK(outcome.completion_s[0] == approx(40 + 2 + 40));
  CHECK(outcome.changes == 1);
}

TEST_CASE("schedule: tiresias lets a job wait once it has had its first 3250 GPU seconds") {
  // One GPU, two jobs of 4000 images. The first runs to 3300 s (the first minute's end after 3250), the
  // second to 6600, then the first its last 700, the second its last 700.
  const std::vector<Job> jobs{linear(4000, 1, 0), linear(4000, 1, 0)};
  const ScheduleOutcome outcome = run_schedule(jobs, *tiresias_l(), {{{1}}, 0});
  CHECK(outcome.completion_s[0] == approx(7300));
  CHECK(outcome.completion_s[1] == approx(8000));
}

TEST_CASE("schedule: work is conserved under every policy") {
  std::vector<Job> jobs;
  for (int j = 0; j < 30; ++j)
    jobs.push_back(linear(50 + 37 * (j % 7), 1 + static_cast<std::uint32_t>(j % 4), 9.0 * j));
  double gpu_s = 0;  // linear jobs: an image is a GPU second whatever their number
  for (const Job& job : jobs) gpu_s += job.images;
  for (const std::string& name : policy_names()) {
    const ScheduleOutcome outcome = run_schedule(jobs, *make_policy(name), {{{6}}, 0});
    CAPTURE(name);
    CHECK(outcome.busy_share * outcome.makespan_s * 6 == approx(gpu_s));
    for (std::size_t j = 0; j < jobs.size(); ++j)
      CHECK(outcome.completion_s[j] >= jobs[j].images / jobs[j].on(0).most() * (1 - 1e-9));
  }
}

TEST_CASE("schedule: a lease that is granted again lasts as long again") {
  // One GPU, leases of 1200 s. The long job is alone when its first lease ends, so it has a second one, in which a
  // short job waits however unfair that is.
  const std::vector<Job> jobs{linear(10'000, 1, 0), linear(10, 1, 1500)};
  const ScheduleOutcome outcome = run_schedule(jobs, *themis_like(), {{{1}}, 0});
  CHECK(outcome.completion_s[1] == approx(2400 - 1500 + 10));
  CHECK(outcome.completion_s[0] == approx(10'010));
}

TEST_CASE("schedule: a fair share of pools of several kinds is the mean of all their GPUs") {
  /// Gives the first pool's GPUs to all, and keeps what it is told.
  struct Watches : DecidesAnew {
    mutable std::vector<double> fair_finish_s;
    std::string name() const override { return "watches"; }
    bool several_kinds() const override { return true; }

   protected:
    std::vector<Allocation> decide(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>&,
                                   double) const override {
      std::vector<Allocation> given;
      for (const ActiveJob& each : jobs) {
        fair_finish_s.push_back(each.fair_finish_s);
        given.push_back({0, each.job->asked});
      }
      return given;
    }
  };
  // On 2 of 4 GPUs at 1 image/s each, and on 2 of 12 at 3: 2 and 6 images/s, in the mean (4 x 2 + 12 x 6) / 16 = 5.
  const Job job{
      "model", 0, 1000, 2,
      std::make_shared<const std::vector<Throughput>>(std::vector<Throughput>{{{0, 1, 2}}, {{0, 3, 6}}})};
  Watches policy;
  run_schedule({job}, policy, {{{4}, {12}}, 0});
  REQUIRE_FALSE(policy.fair_finish_s.empty());
  CHECK(policy.fair_finish_s.front() == approx(200).epsilon(1e-12));
}

TEST_CASE("schedule: jobs that can never run are an error") {
  CHECK_THROWS_WITH(run_schedule({linear(10, 4, 0)}, *srtf(), {{{2}}, 0}),
                    "schedule: srtf leaves jobs waiting for ever");
}

TEST_CASE("schedule: a job on more hosts than it needs runs at what that costs") {
  // Hosts of 2. Two jobs on one GPU each fill a host; when the first ends, a job of 2 comes onto the free
  // host.
  Throughput slow_apart{{0, 1, 2}, {{0, 1, 2}, {0, 1, 0.5}}};
  const auto apart = kinds_of({slow_apart});
  const std::vector<Job> jobs{{"model", 0, 100, 1, apart},
                              {"model", 0, 100, 1, apart},
                              {"model", 0, 10, 1, apart},
                              {"model", 20, 10, 2, apart}};
  // At 20 s host 0 is full and host 1 has had one GPU free since 10 s: the job of 2 waits for two GPUs
  // together.
  const ScheduleOutcome three = run_schedule(jobs, *srtf(), {{{4, 2}}, 0});
  CHECK(three.completion_s[3] == approx(5));  // host 1 is empty: packed, 2 images/s
  CHECK(three.scattered_share == 0);
  // Three long jobs of 1 leave one GPU on each of 3 hosts only once others have gone.
  const std::vector<Job> scattered{{"model", 0, 10, 1, apart},
                                   {"model", 0, 100, 1, apart},
                                   {"model", 0, 10.5, 1, apart},
                                   {"model", 0, 100, 1, apart},
                                   {"model", 20, 10, 2, apart}};
  const ScheduleOutcome two = run_schedule(scattered, *srtf(), {{{4, 2}}, 0});
  CHECK(two.completion_s[4] == approx(20));  // one GPU on each host: 0.5 images/s
  CHECK(two.scattered_share == approx(2 * 20 / (2 * 20 + 10 + 10.5 + 200)));
}

TEST_CASE("schedule: of jobs that begin together those with most GPUs get hosts of their own") {
  // Hosts of 4, a job of 2 first in the queue: the jobs of 3 fill a host each, and it is spread over what is left.
  const auto apart = kinds_of({{{0, 1, 2, 3}, {{0, 1, 2, 3}, {0, 1, 0.5, 0.5}}}});
  const std::vector<Job> jobs{
      {"model", 0, 10, 2, apart}, {"model", 0, 30, 3, apart}, {"model", 0, 30, 3, apart}};
  const ScheduleOutcome outcome = run_schedule(jobs, *srtf(), {{{8, 4}}, 0});
  CHECK(outcome.completion_s[0] == approx(20));
  CHECK(outcome.completion_s[1] == approx(10));
  CHECK(outcome.completion_s[2] == approx(10));
}

TEST_CASE("schedule: jobs go where they are fastest, and to the other kind when that is taken") {
  const auto both = kinds_of({{{0, 1, 2}}, {{0, 4, 8}}});
  const std::vector<Job> jobs{{"model", 0, 40, 2, both}, {"model", 0, 80, 2, both}};
  const ScheduleOutcome outcome = run_schedule(jobs, *srtf(), {{{2}, {2}}, 3});
  CHECK(outcome.completion_s[0] == approx(5));
  // 10 images in 5 s on the slow kind, then a pause of 3 s and 70 images on the fast one.
  CHECK(outcome.completion_s[1] == approx(5 + 3 + 70 / 8.0));
  CHECK(outcome.changes == 1);
  CHECK(outcome.busy_share == approx((2 * 5 + 2 * outcome.completion_s[1]) / (4 * outcome.completion_s[1])));
}

TEST_CASE("schedule: a job that cannot run on a kind waits for the other") {
  const auto second = kinds_of({{}, {{0, 1}}});
  const std::vector<Job> jobs{{"model", 0, 10, 1, second}, {"model", 0, 20, 1, second}};
  for (const char* name : {"srtf", "sia-like"}) {
    CAPTURE(name);
    const ScheduleOutcome outcome = run_schedule(jobs, *make_policy(name), {{{2}, {1}}, 0});
    CHECK(outcome.completion_s[0] == approx(10));
    CHECK(outcome.completion_s[1] == approx(30));
  }
}

TEST_CASE("schedule: deadlines that are kept are counted, jobs without one are not") {
  std::vector<Job> jobs{linear(10, 1, 0), linear(10, 1, 0), linear(10, 1, 0)};
  jobs[0].deadline_s = 10;
  jobs[1].deadline_s = 15;
  const ScheduleOutcome outcome = run_schedule(jobs, *edf(), {{{1}}, 0});
  CHECK(outcome.completion_s == std::vector<double>{10, 20, 30});
  CHECK(outcome.deadlines_met == approx(0.5));
  CHECK_FALSE(run_schedule({linear(10, 1, 0)}, *edf(), {{{1}}, 0}).deadlines_met);
}

TEST_CASE("schedule: elasticflow keeps every deadline of what it admits, and admits what can be kept") {
  // 2 GPUs, linear jobs. 20 images until 20 s need 1 GPU; 20 until 20 s more the other; a third cannot be
  // kept.
  std::vector<Job> jobs{linear(20, 2, 0, 2), linear(20, 2, 0, 2), linear(20, 2, 0, 2)};
  for (Job& job : jobs) job.deadline_s = 20;
  const ScheduleOutcome outcome = run_schedule(jobs, *elasticflow_like(), {{{2}}, 0});
  CHECK(outcome.completion_s[0] == approx(20));
  CHECK(outcome.completion_s[1] == approx(20));
  CHECK(outcome.completion_s[2] == approx(30));
  CHECK(outcome.deadlines_met == approx(2 / 3.0));
}

TEST_CASE("schedule: jobs that slow each other down do so while both run, and the loss is counted") {
  // Two GPUs, a job on each. Beside the other the first takes twice as long, the second four times: the second
  // ends at 80 s, when the first has 60 images left.
  const std::vector<Job> jobs{linear(100, 1, 0), linear(20, 1, 0)};
  ScheduleOptions options{{{2}}, 0};
  int asked = 0;
  options.slowdowns = [&](const std::vector<PlacedJob>& placed) {
    ++asked;
    return placed.size() == 2 ? std::vector<double>{2, 4} : std::vector<double>(placed.size(), 1.0);
  };
  const ScheduleOutcome outcome = run_schedule(jobs, *srtf(), options);
  CHECK(outcome.completion_s[1] == approx(80));
  CHECK(outcome.completion_s[0] == approx(80 + 60));
  CHECK(outcome.sharing_loss == approx((80 * 0.5 + 80 * 0.75) / (140 + 80)));
  CHECK(asked == 2);
}
