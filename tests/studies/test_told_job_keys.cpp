// SPDX-License-Identifier: MIT
// The keys that `convoy show keys jobs` tells are those that its readers take.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/input_error.h"
#include "sim/schedule/trace_file.h"
#include "sim/studies/job_study.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

std::string jobs_said(const std::string& entries) {
  try {
    const YamlNode node = parse_yaml("{" + entries + "}", "told.yaml");
    const JobStudy study = read_job_study(node);
    std::string text =
        fmt::format("{} {} {} {} {} {} {}", study.pause_s, study.trace.jobs, study.trace.spread,
                    fmt::join(study.mean_intervals_s, " "), fmt::join(study.seeds, " "),
                    fmt::join(study.policies, " "), study.deadlines ? study.deadlines->most : 0);
    for (const TracedJob& job : study.traced)
      text += fmt::format("; {} {} {} {} {}", job.arrival_s, job.asked, job.length_s, job.model,
                          job.deadline_s.value_or(-1));
    for (const WorkloadJob& job : study.workload)
      text += fmt::format("; {} {} {} {}", job.arrival_s, job.asked, job.least_gpu_s, job.most_gpu_s);
    return text;
  } catch (const InputError& error) {
    return error.what();
  }
}

told::Reading jobs_between(std::string before, std::string after) {
  return [=](const std::string& entries) { return jobs_said(before + entries + after); };
}

}  // namespace

TEST_CASE("told keys: a queue of jobs takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = job_keys().keys;
  const std::string drawn =
      "gpus: 8, count: 20, median_length: 10min, spread: 1, asked: {1: 3}, mean_intervals: [1min], policies: "
      "[srtf]";
  CHECK(told::check(keys, drawn, &jobs_said) == 3);
  told::check(told::parts_of(keys, "deadlines"), "least: 1, most: 2",
              jobs_between(drawn + ", deadlines: {", "}"));
  told::check(told::parts_of(told::parts_of(keys, "convergence"), "MODEL"), "batch: 64, noise_scale: 9",
              jobs_between(drawn + ", convergence: {toy: {", "}}"));
  told::check(traced_job_columns(), "arrival_s: 0, gpus: 1, length_s: 3",
              jobs_between("gpus: 8, policies: [srtf], trace: [{", "}]"));
  told::check(workload_job_columns(), "arrival_s: 0, gpus: 1, least_gpu_h: 1, most_gpu_h: 2",
              jobs_between("gpus: 8, policies: [srtf], workload: [{", "}]"));
}

TEST_CASE("told keys: a misspelt key of a job is told, and not that another one is missing") {
  CHECK(
      jobs_said("gpus: 8, policies: [srtf], trace: [{arrival_s: 0, gpu: 1, length_s: 3}]")
          .ends_with(
              "jobs.trace.gpu: unknown key (did you mean 'gpus'?); known here: arrival_s, deadline_s, gpus, "
              "length_s, model"));
}
