// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "sim/run/sweep.h"
#include "sim/studies/shared_links.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Devices that need next to no time to compute, four a host of next to no latency inside: steps of jobs on
/// several hosts are what their NICs need, 1 GB/s either way.
std::string experiment_text(const std::string& jobs, const std::string& strategy =
                                                         "{kind: data_parallel, sync: "
                                                         "all_reduce, algorithm: ring}") {
  const std::string parts =
      "name: lab, fabric: {kind: switch, bandwidth: 1GB/s, latency: 0us}, servers: {box: {devices: [{device: "
      "ideal, count: 4}], interconnect: {kind: nvswitch, bandwidth: 1000GB/s, latency: 0us}}}, devices: "
      "{ideal: "
      "{peak: {fp32: 1000TFLOPS}, memory: 16GiB, memory_bandwidth: 1000000GB/s, efficiency: 1.0, "
      "launch_overhead: 0us}}";
  return "experiment: shared\n"
         "model: {name: wide, input: [1], layers: [{name: all, kind: custom, forward_flops: 1, "
         "backward_flops: 1, "
         "parameters: 1000000, output: [1]}]}\n"
         "training: {batch_per_device: 1, precision: fp32, optimizer: sgd}\n"
         "cluster: {" +
         parts +
         ", nodes: [{name: n, count: 1, server: box}]}\n"
         "strategy: " +
         strategy +
         "\n"
         "sweep: {cluster.nodes: [[{name: n, count: 1, server: box}], [{name: n, count: 2, server: box}]], "
         "cluster.devices_per_node: [1, 2, 3, 4]}\n"
         "jobs: {gpus: 12, gpus_per_host: 4, policies: [srtf], cluster: {" +
         parts + ", nodes: [{name: n, count: 3, server: box}]}, trace: " + jobs + "}\n";
}

std::string queue_swapped(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

/// The same runs by number of hosts, as a sweep of `cluster.nodes: [1, 2]` has them.
std::vector<RunResult> runs_by_hosts(const Experiment& experiment) {
  std::vector<RunResult> runs = simulate_sweep(experiment, 1).runs;
  for (RunResult& run : runs)
    for (auto& [path, value] : run.point)
      if (path == "cluster.nodes") value = parse_yaml(std::to_string(run.id > "4" ? 2 : 1), "");
  return runs;
}

ScheduleResult shared_queue_of(const std::string& text) {
  const Experiment experiment = Experiment::parse(text, "queue.yaml", {});
  const JobStudy study = read_job_study(*experiment.jobs());
  const std::vector<RunResult> runs = runs_by_hosts(experiment);
  return run_queues(experiment, study, job_kinds(Results{"", runs, {}}, study, {}), {}).front();
}

std::string queue_error_of(const std::string& text) {
  try {
    check_queues(Experiment::parse(text, "queue.yaml", {}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string two_of_six =
    "[{arrival_s: 0, gpus: 6, length_s: 100}, {arrival_s: 0, gpus: 6, length_s: 100}]";

}  // namespace

TEST_CASE("shared links: two jobs that meet at a host's NIC, and only communicate, take twice as long") {
  // Of six GPUs each: four of host 0 and two of host 1; four of host 2 and the other two of host 1.
  const ScheduleResult result = shared_queue_of(experiment_text(two_of_six));
  CHECK(result.mean_completion_s == approx(200).epsilon(1e-4));
  CHECK(result.sharing_loss == approx(0.5).epsilon(1e-4));
}

TEST_CASE("shared links: a job goes on at its own pace when the other has ended") {
  // Together until the shorter one has ended at 100 s, when the longer one has 100 - 50 s to go.
  const ScheduleResult result =
      shared_queue_of(experiment_text(queue_swapped(two_of_six, "length_s: 100", "length_s: 50")));
  CHECK(result.mean_completion_s == approx((100 + 150) / 2.0).epsilon(1e-4));
  CHECK(result.sharing_loss == approx(0.4).epsilon(1e-4));  // 100 + 100 s at half their pace, of 250 s
}

TEST_CASE("shared links: jobs with hosts of their own lose nothing") {
  const ScheduleResult result = shared_queue_of(
      experiment_text("[{arrival_s: 0, gpus: 4, length_s: 100}, {arrival_s: 0, gpus: 8, length_s: 100}]"));
  CHECK(result.mean_completion_s == approx(100));
  CHECK(result.sharing_loss == 0);
}

TEST_CASE("shared links: a set of jobs is simulated once, whichever hosts it has") {
  const Experiment experiment = Experiment::parse(experiment_text(two_of_six), "queue.yaml", {});
  const JobStudy study = read_job_study(*experiment.jobs());
  Preparer preparer(experiment);
  SharedLinks links(preparer, study);
  const Job job{"wide", 0, 1, 6, nullptr};
  using Place = Places::Place;
  const auto slow = [&](const Place& a, const Place& b) {
    return links.slowdowns({{&job, 6, &a}, {&job, 6, &b}});
  };
  const std::vector<double> first = slow({0, {{0, 4}, {1, 2}}}, {0, {{2, 4}, {1, 2}}});
  CHECK(first[0] == approx(2).epsilon(1e-4));
  CHECK(links.simulated_sets() == 1);
  CHECK(slow({0, {{2, 4}, {0, 2}}}, {0, {{1, 4}, {0, 2}}}) == first);
  CHECK(links.simulated_sets() == 1);
  // Two hosts in common: both NICs are shared, and each is as full as the one before.
  CHECK(slow({0, {{0, 2}, {1, 2}}}, {0, {{0, 2}, {1, 2}}})[0] == approx(2).epsilon(1e-4));
  CHECK(links.simulated_sets() == 2);
}

TEST_CASE("shared links: what cannot be simulated is told at its place") {
  const std::string text = experiment_text(two_of_six);
  CHECK(queue_error_of(text) == "no error");
  CHECK(queue_error_of(queue_swapped(text, "count: 3", "count: 2"))
            .ends_with("jobs.cluster: has 8 devices in 2 hosts, and the queue 12 GPUs, 4 a host"));
  std::string other = text;
  other.replace(other.rfind("{ideal: "), 8, "{other: ")
      .replace(other.rfind("device: ideal"), 13, "device: other");
  CHECK(queue_error_of(other).ends_with(
      "jobs.cluster: has other, and a run of the sweep ideal; jobs train as fast "
      "as these runs, so give it the same devices"));
  CHECK(queue_error_of(queue_swapped(text, "gpus_per_host: 4, ", ""))
            .ends_with("jobs.cluster: jobs share links where GPUs are of one kind, and gpus_per_host says "
                       "where they are"));
  CHECK(queue_error_of(experiment_text(two_of_six,
                                       "{kind: data_parallel, sync: parameter_server, servers: 1, mode: "
                                       "async, placement: colocated}"))
            .ends_with("strategy: cannot be simulated beside other jobs (jobs.cluster): its devices have "
                       "no common step"));
  CHECK(queue_error_of(experiment_text(two_of_six, "{kind: auto}"))
            .ends_with(
                "strategy: jobs that share links (jobs.cluster) need one strategy each, and not 'auto'"));
}
