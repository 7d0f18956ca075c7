// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "sim/studies/job_study.h"

using namespace convoy;

namespace {

const std::string good =
    "{gpus: 8, count: 20, median_length: 10min, spread: 1, asked: {1: 3, 4: 1}, mean_intervals: [1min, "
    "5min], "
    "policies: [afs-l, srtf]}";

std::string error_of(const std::string& text) {
  try {
    read_job_study(parse_yaml(text, "jobs.yaml"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

RunResult run(const char* model, std::int64_t devices, double throughput) {
  RunResult result;
  result.model = model;
  result.devices = devices;
  result.throughput_images_per_s = throughput;
  return result;
}

}  // namespace

TEST_CASE("job study: every load under every policy, in order") {
  const std::vector<ScheduleResult> results =
      run_job_study(read_job_study(parse_yaml(good, "jobs.yaml")), {{"model", {0, 1, 1.9, 2.7, 3.4}}});
  REQUIRE(results.size() == 4);
  CHECK(results[0].policy == "afs-l");
  CHECK(results[1].policy == "srtf");
  CHECK(results[1].mean_interval_s == 60);
  CHECK(results[2].mean_interval_s == 300);
  for (const ScheduleResult& result : results) {
    CHECK(result.jobs == 20);
    CHECK(result.seed == 1);
    CHECK(result.mean_completion_s > 0);
  }
}

TEST_CASE("job study: throughput between two runs lies on the line between them") {
  const auto kinds = job_kinds({run("a", 1, 10), run("b", 1, 7), run("a", 4, 31), run("a", 2, 19)}, {});
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].model == "a");
  CHECK(kinds[0].throughput == std::vector<double>{0, 10, 19, 25, 31});
  CHECK(kinds[1].throughput == std::vector<double>{0, 7});
}

TEST_CASE("job study: errors say what is wrong and where") {
  CHECK(error_of(replaced(good, "srtf", "sjf")) ==
        "jobs.yaml:1:124: jobs.policies: 'sjf' is not a policy (did you mean 'srtf'?); there are afs-l, "
        "tiresias-l, srtf, "
        "themis-like");
  CHECK(error_of(replaced(good, "4: 1", "9: 1")) ==
        "jobs.yaml:1:72: jobs.asked.9: expected a number of GPUs from 1 to 8 as key");
  CHECK(error_of(replaced(good, "[1min, 5min]", "[]")) ==
        "jobs.yaml:1:92: jobs.mean_intervals: expected a list of times between two arrivals, such as [2min, "
        "5min]");
  CHECK_THROWS_WITH_AS(job_kinds({run("a", 2, 10)}, {"jobs.yaml", 9, 3}),
                       "jobs.yaml:9:3: jobs: the sweep has no run of a on one device, which takes time",
                       InputError);
  CHECK_THROWS_WITH_AS(job_kinds({run("a", 1, 10), run("a", 1, 11)}, {"jobs.yaml", 9, 3}),
                       "jobs.yaml:9:3: jobs: the sweep has two runs of a on 1 devices; a queue takes one throughput "
                       "for each model and number of devices",
                       InputError);
  RunResult large = run("a", 1, 10);
  large.fits = false;
  CHECK_THROWS_WITH_AS(job_kinds({large}, {"jobs.yaml", 9, 3}),
                       "jobs.yaml:9:3: jobs: a on 1 devices does not fit in memory; leave that number out of the sweep, "
                       "or give it smaller batches",
                       InputError);
}
