// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "sim/studies/job_study.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

const std::string good =
    "{gpus: 8, count: 20, median_length: 10min, spread: 1, asked: {1: 3, 4: 1}, mean_intervals: [1min, "
    "5min], "
    "policies: [afs-l, srtf]}";

std::string job_error(const std::string& text) {
  try {
    read_job_study(parse_yaml(text, "jobs.yaml"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_replaced(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

RunResult run(const char* model, std::int64_t devices, double throughput, const char* kind = "k80",
              std::int64_t hosts = 0, double batch = 256) {
  RunResult result;
  result.model = model;
  result.devices = devices;
  result.throughput_images_per_s = throughput;
  result.device_type = kind;
  result.global_batch = batch;
  if (hosts > 0) result.point = {{"cluster.nodes", parse_yaml(std::to_string(hosts), "")}};
  return result;
}

JobStudy study_of(const std::string& text) { return read_job_study(parse_yaml(text, "jobs.yaml")); }

std::vector<double> packed(const JobKinds& kinds, std::size_t model, std::size_t kind = 0) {
  return kinds.as_asked[model].kinds[kind].packed;
}

std::string kinds_error(const std::vector<RunResult>& runs, const JobStudy& study) {
  try {
    job_kinds(Results{"", runs, {}}, study, {"jobs.yaml", 9, 3});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("job study: every load under every policy and seed, in order") {
  const JobStudy study = study_of(with_replaced(good, "count: 20", "count: 20, seeds: 3, seed: 7"));
  const JobKinds kinds = job_kinds(Results{"", {run("model", 1, 1), run("model", 4, 3.4)}, {}}, study, {});
  const std::vector<ScheduleResult> results = run_job_study(study, kinds, {});
  REQUIRE(results.size() == 12);
  CHECK(results[0].policy == "afs-l");
  CHECK(results[2].seed == 9);
  CHECK(results[3].policy == "srtf");
  CHECK(results[3].seed == 7);
  CHECK(results[5].mean_interval_s == 60);
  CHECK(results[6].mean_interval_s == 300);
  for (const ScheduleResult& result : results) {
    CHECK(result.jobs == 20);
    CHECK(result.mean_completion_s > 0);
    CHECK_FALSE(result.deadlines_met);
    CHECK_FALSE(result.scattered_share);
  }
  CHECK(results[0].mean_completion_s != results[1].mean_completion_s);
}

TEST_CASE("job study: throughput between two runs lies on the line between them") {
  const JobKinds kinds =
      job_kinds(Results{"", {run("a", 1, 10), run("b", 1, 7), run("a", 4, 31), run("a", 2, 19)}, {}},
                study_of(good), {});
  REQUIRE(kinds.as_asked.size() == 2);
  CHECK(kinds.as_asked[0].model == "a");
  CHECK(packed(kinds, 0) == std::vector<double>{0, 10, 19, 25, 31});
  CHECK(packed(kinds, 1) == std::vector<double>{0, 7});
}

TEST_CASE("job study: kinds of devices are told apart, and a model may lack one") {
  const JobStudy study = study_of(
      "{gpus: {k80: 4, v100: 2}, count: 20, median_length: 10min, spread: 1, asked: {1: 1}, mean_intervals: "
      "[1min], "
      "policies: [srtf]}");
  CHECK(study.pools.size() == 2);
  const JobKinds kinds = job_kinds(
      Results{"",
              {run("a", 1, 10), run("a", 1, 60, "v100"), run("a", 2, 100, "v100"), run("b", 1, 5, "v100")},
              {}},
      study, {});
  CHECK(packed(kinds, 0, 0) == std::vector<double>{0, 10});
  CHECK(packed(kinds, 0, 1) == std::vector<double>{0, 60, 100});
  CHECK(packed(kinds, 1, 0).empty());
  CHECK(kinds_error({run("a", 1, 10, "p100")}, study) ==
        "jobs.yaml:9:3: jobs: the sweep has runs of a on p100, of which the cluster has none (gpus)");
}

TEST_CASE("job study: hosts make a difference where the sweep says so") {
  const JobStudy study = study_of(with_replaced(good, "gpus: 8", "gpus: 8, gpus_per_host: 2"));
  const JobKinds kinds =
      job_kinds(Results{"",
                        {run("a", 1, 10, "k80", 1), run("a", 2, 20, "k80", 1), run("a", 2, 12, "k80", 2),
                         run("a", 4, 30, "k80", 2), run("a", 4, 16, "k80", 4)},
                        {}},
                study, {});
  CHECK(packed(kinds, 0) ==
        std::vector<double>{0, 10, 20, 21, 30});  // 3 on 2 hosts: between 2 and 4 on 2 hosts
  const Throughput& on = kinds.as_asked[0].kinds[0];
  CHECK(on.on(2, 1) == 20);
  CHECK(on.on(2, 2) == 12);
  CHECK(on.on(4, 2) == 30);
  CHECK(on.on(4, 3) == 23);  // between 2 and 4 hosts
  CHECK(on.on(4, 4) == 16);
  CHECK(kinds_error({run("a", 1, 10, "k80", 1)}, study_of(good)) ==
        "jobs.yaml:9:3: jobs: the sweep has runs of a on 1 hosts; say how many GPUs the cluster's hosts "
        "have: gpus_per_host");
}

TEST_CASE("job study: images count by what they teach, and policies that choose take the best batch") {
  const JobStudy study = study_of(
      with_replaced(good, "count: 20", "count: 20, convergence: {a: {noise_scale: 1000, batch: 1000}}"));
  // Epochs grow as 1 + B / 1000: 1.5 with 500, 2 with 1000. Of the smallest batch all images count.
  const JobKinds kinds = job_kinds(Results{"",
                                           {run("a", 1, 10, "k80", 0, 500), run("a", 2, 11, "k80", 0, 500),
                                            run("a", 1, 12, "k80", 0, 1000), run("a", 2, 24, "k80", 0, 1000)},
                                           {}},
                                   study, {});
  CHECK(packed(kinds, 0)[1] == approx(12 * 0.75));
  CHECK(packed(kinds, 0)[2] == approx(24 * 0.75));
  CHECK(kinds.best_batch[0].kinds[0].packed[1] == approx(10));
  CHECK(kinds.best_batch[0].kinds[0].packed[2] == approx(18));
}

TEST_CASE("job study: a trace gives the jobs, their interval is its own") {
  const JobStudy study = study_of(
      "{gpus: 8, trace: [{arrival_s: 100, gpus: 2, length_s: 60, model: a}, {arrival_s: 0, gpus: 1, "
      "length_s: 30}], "
      "deadlines: {least: 10, most: 10}, policies: [edf]}");
  const JobKinds kinds = job_kinds(Results{"", {run("a", 1, 10), run("a", 2, 19)}, {}}, study, {});
  const std::vector<ScheduleResult> results = run_job_study(study, kinds, {});
  REQUIRE(results.size() == 1);
  CHECK(results[0].jobs == 2);
  CHECK(results[0].mean_interval_s == 100);
  CHECK(results[0].mean_completion_s == approx(45));
  CHECK(results[0].deadlines_met == approx(1));
}

TEST_CASE(
    "job study: a workload's loads are multiples of its jobs in the same hours, drawn anew for each seed") {
  const JobStudy study = study_of(
      "{gpus: 8, workload: [{arrival_s: 100, gpus: 2, least_gpu_h: 0.01, most_gpu_h: 0.02}, {arrival_s: "
      "4000, gpus: 1, "
      "least_gpu_h: 0.1, most_gpu_h: 0.2}], loads: [1, 3], seeds: 2, policies: [srtf]}");
  const std::vector<ScheduleResult> results =
      run_job_study(study, job_kinds(Results{"", {run("a", 1, 10), run("a", 2, 19)}, {}}, study, {}), {});
  REQUIRE(results.size() == 4);
  CHECK(results[0].jobs == 2);
  CHECK(results[0].mean_interval_s == 3600);
  CHECK(results[2].jobs == 6);
  CHECK(results[2].mean_interval_s == 1200);
  CHECK(results[0].mean_completion_s != results[1].mean_completion_s);
  CHECK(results[2].makespan_s <= 7200 + 6 * 720);
}

TEST_CASE("job study: errors say what is wrong and where") {
  CHECK(job_error(with_replaced(good, "srtf", "sjf")) ==
        "jobs.yaml:1:124: jobs.policies: 'sjf' is not a policy (did you mean 'srtf'?); there are afs-l, "
        "afs-p-like, "
        "optimus-like, tiresias-l, srtf, themis-like, edf, elasticflow-like, pollux-like, sia-like");
  CHECK(job_error(with_replaced(good, "4: 1", "9: 1")) ==
        "jobs.yaml:1:72: jobs.asked.9: expected a number of GPUs from 1 to 8 as key");
  CHECK(job_error(with_replaced(good, "[1min, 5min]", "[]")) ==
        "jobs.yaml:1:92: jobs.mean_intervals: expected a list of times between two arrivals, such as [2min, "
        "5min]");
  CHECK(job_error(with_replaced(good, "gpus: 8", "gpus: {k80: 4, v100: 4}")) ==
        "jobs.yaml:1:133: jobs.policies: 'afs-l' shares GPUs of one kind; of several do tiresias-l, srtf, "
        "themis-like, edf, "
        "sia-like");
  CHECK(job_error(with_replaced(good, "gpus: 8", "gpus: 8, gpus_per_host: 3")) ==
        "jobs.yaml:1:26: jobs.gpus_per_host: 8 GPUs are not whole hosts of 3");
  CHECK(job_error(with_replaced(good, "count: 20", "count: 20, trace: jobs.csv")) ==
        "jobs.yaml:1:29: jobs.trace: there is no file jobs.csv");
  CHECK(job_error(
            with_replaced(good, "count: 20", "count: 20, trace: [{arrival_s: 0, gpus: 1, length_s: 3}]")) ==
        "jobs.yaml:1:18: jobs.count: the trace says which jobs come, and when");
  CHECK(job_error("{gpus: 8, trace: [{arrival_s: 0, gpus: 9, length_s: 3}], policies: [srtf]}") ==
        "jobs.yaml:1:40: jobs.trace.gpus: 9 is out of range: between 1 and 8 is allowed");
  CHECK(job_error("{gpus: 8, workload: [{arrival_s: 0, gpus: 9, least_gpu_h: 2, most_gpu_h: 1}], policies: "
                  "[srtf]}") ==
        "jobs.yaml:1:43: jobs.workload.gpus: 9 is out of range: between 1 and 8 is allowed");
  CHECK(job_error("{gpus: 8, workload: [{arrival_s: 0, gpus: 8, least_gpu_h: 2, most_gpu_h: 1}], policies: "
                  "[srtf]}") ==
        "jobs.yaml:1:74: jobs.workload.most_gpu_h: 1 is out of range: at least 2 is allowed");
  CHECK(job_error("{gpus: 8, workload: jobs.csv, policies: [srtf]}") ==
        "jobs.yaml:1:21: jobs.workload: there is no file jobs.csv");
  CHECK(job_error(
            with_replaced(good, "count: 20",
                          "count: 20, workload: [{arrival_s: 0, gpus: 1, least_gpu_h: 1, most_gpu_h: 2}]")) ==
        "jobs.yaml:1:18: jobs.count: the workload says which jobs come, and when");
  CHECK(job_error(with_replaced(good, "count: 20", "count: 20, convergence: {a: {batch: 3}}")) ==
        "jobs.yaml:1:39: jobs.convergence.a: expected 'target', a table of epochs, or 'noise_scale', images");
  const JobStudy study = study_of(good);
  CHECK(kinds_error({run("a", 2, 10)}, study) ==
        "jobs.yaml:9:3: jobs: the sweep has no run of a on one device, which takes time");
  CHECK(kinds_error({run("a", 1, 10), run("a", 1, 11)}, study) ==
        "jobs.yaml:9:3: jobs: the sweep has two runs of a on 1 devices; a queue takes one throughput for "
        "each model and "
        "number of devices, kind of device (gpus: {KIND: N}), number of hosts (a sweep over cluster.nodes) "
        "and batch "
        "(convergence: {MODEL: ...})");
  RunResult large = run("a", 1, 10);
  large.fits = false;
  CHECK(kinds_error({large}, study) ==
        "jobs.yaml:9:3: jobs: a on 1 devices does not fit in memory; leave that number out of the sweep, or "
        "give it "
        "smaller batches");
}
