// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;

namespace {

std::string elastic_experiment(const std::string& batch) {
  return "experiment: elastic\n"
         "model: resnet50\n"
         "training: {" +
         batch +
         ", precision: fp32, optimizer: momentum}\n"
         "cluster: {server: gcp-n1-standard-8-k80, nodes: 16}\n"
         "strategy:\n"
         "  kind: elastic\n"
         "  inner: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n"
         "  schedule: [{at_step: 0, devices: 4}, {at_step: 20, devices: 8}, {at_step: 60, devices: 3}]\n"
         "  balance: uniform\n"
         "sweep:\n"
         "  strategy.reconfigure: [restart, overlapped]\n";
}

}  // namespace

TEST_CASE("elastic: the peak, the memory it is of, and its interval are those of the fullest phase") {
  const Workplace place;
  // The first phase has the whole batch on one device of 4 GB, the second also one of 64 GB.
  place.file("e.yaml",
             "experiment: e\nmodel: alexnet\ntraining: {global_batch: 128}\n"
             "cluster:\n"
             "  nodes: [{name: small, count: 1, server: small}, {name: large, count: 1, server: large}]\n"
             "  fabric: {kind: switch, bandwidth: 10Gbps, latency: 20us, protocol: tcp}\n"
             "  servers:\n"
             "    small: {devices: [{device: small, count: 1}], interconnect: {kind: none}}\n"
             "    large: {devices: [{device: large, count: 1}], interconnect: {kind: none}}\n"
             "  devices:\n"
             "    small: {peak: {fp32: 5TFLOPS}, memory: 4GB, memory_bandwidth: 200GB/s, efficiency: 0.5}\n"
             "    large: {peak: {fp32: 50TFLOPS}, memory: 64GB, memory_bandwidth: 900GB/s, efficiency: 0.5}\n"
             "strategy: {kind: elastic, inner: {kind: data_parallel, sync: all_reduce}, schedule: [{at_step: "
             "0, devices: 1}, {at_step: 20, devices: 2}]}\n");
  const Finished run = place.convoy({"run", "e.yaml", "--json"});
  REQUIRE(run.exit_code == 0);
  const json result = json::parse(run.out)["runs"][0];
  const double peak = result["peak_memory_bytes"];
  CHECK(peak == result["phases"][0]["peak_memory_bytes"]);
  CHECK(peak > result["phases"][1]["peak_memory_bytes"].get<double>());
  CHECK(result["device_memory_bytes"] == 4e9);
  const json& interval = result["interval"]["peak_memory_bytes"];
  CHECK(std::sqrt(interval[0].get<double>() * interval[1].get<double>()) == convoy::approx(peak));
}

TEST_CASE("elastic: phases and pauses in results.json") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("global_batch: 512"));
  const Finished run = place.convoy({"run", "e.yaml", "--json"});
  REQUIRE(run.exit_code == 0);
  const json report = json::parse(run.out);
  for (const json& point : report["runs"]) {
    const json& changes = point["reconfigurations"];
    REQUIRE(changes.size() == 2);
    CHECK(changes[0]["at_step"] == 20);
    CHECK(changes[0]["from"] == 4);
    CHECK(changes[0]["to"] == 8);
    CHECK(changes[1]["at_step"] == 60);
    CHECK(changes[1]["to"] == 3);
    REQUIRE(point["phases"].size() == 3);
    for (const json& phase : point["phases"])
      CHECK(phase["throughput_images_per_s"].get<double>() * phase["step_time_s"].get<double>() ==
            convoy::approx(512));
    // the run's own figures are the last phase's
    CHECK(point["devices"] == 3);
    std::int64_t devices = 0;
    for (const json& device : point["per_device"]) devices += device["count"].get<std::int64_t>();
    CHECK(devices == 3);
    CHECK(point["step_time_s"] == point["phases"][2]["step_time_s"]);
    CHECK(point["peak_memory_bytes"] == point["phases"][2]["peak_memory_bytes"]);
  }
  const json& restart = report["runs"][0];
  const json& overlapped = report["runs"][1];
  // ResNet-50: 25,557,032 parameters, weights and momentum: 8 bytes each, written and read at 600 MB/s
  const double start_s = 3.37 + 4.3 + 3, checkpoint_s = 2 * 8 * 25'557'032 / 600e6;
  CHECK(restart["reconfigurations"][0]["pause_s"].get<double>() ==
        convoy::approx(start_s + checkpoint_s + 1.36 + 8 * 0.0844));
  CHECK(restart["reconfigurations"][1]["pause_s"].get<double>() ==
        convoy::approx(start_s + checkpoint_s + 1.36 + 3 * 0.0844));
  // Nothing of it is stated here: by hand, of the parts' 80 % intervals.
  const auto of = [](double time_s, double spread) {
    return std::pow(time_s * std::expm1(1.2815516 * spread), 2);
  };
  CHECK(restart["reconfigurations"][0]["pause_interval_s"][1].get<double>() -
            restart["reconfigurations"][0]["pause_s"].get<double>() ==
        convoy::approx(std::sqrt(of(3.37, 0.54) + of(4.3, 0.54) + of(3, 0.63) + of(checkpoint_s, 0.54) +
                                 of(1.36 + 8 * 0.0844, 0.54)))
            .epsilon(1e-6));
  // Messages alone: as far off either way, in logarithms.
  const json& shrinking = overlapped["reconfigurations"][1];
  const double pause_s = shrinking["pause_s"], least_s = shrinking["pause_interval_s"][0],
               most_s = shrinking["pause_interval_s"][1];
  CHECK(most_s > 1.05 * pause_s);
  CHECK(least_s * most_s == convoy::approx(pause_s * pause_s).epsilon(1e-9));
  // the newcomers are ready after so many steps of the four old devices
  const double old_step_s = overlapped["phases"][0]["step_time_s"].get<double>();
  const double steps = std::ceil(start_s / old_step_s);
  CHECK(overlapped["reconfigurations"][0]["first_step"].get<double>() == 20 + steps);
  CHECK(
      overlapped["phases"][1]["start_s"].get<double>() ==
      convoy::approx((20 + steps) * old_step_s + overlapped["reconfigurations"][0]["pause_s"].get<double>()));
  CHECK(overlapped["reconfigurations"][1]["pause_s"].get<double>() <
        overlapped["phases"][1]["step_time_s"].get<double>());
}

TEST_CASE("elastic: hosts are paid for from when they are asked for, while they get ready too") {
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: resnet50\n"
             "training: {global_batch: 512, precision: fp32, dataset: {samples: 51200}}\n"
             "cluster:\n  nodes: [{name: n, count: 8, server: box}]\n"
             "  fabric: {kind: switch, bandwidth: 10Gbps, latency: 30us, protocol: tcp}\n"
             "  servers: {box: {devices: [{device: k80}], price: 3USD/h}}\n"
             "strategy: {kind: elastic, inner: {kind: data_parallel, sync: all_reduce}, "
             "schedule: [{at_step: 0, devices: 4}, {at_step: 20, devices: 8}]}\n");
  const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
  const double epoch_s = run["epoch_time_s"], asked_s = 20 * run["phases"][0]["step_time_s"].get<double>();
  CHECK(run["phases"][1]["start_s"].get<double>() > asked_s + 5);
  CHECK(run["cost_usd_per_epoch"].get<double>() ==
        convoy::approx(3.0 / 3600 * (4 * epoch_s + 4 * (epoch_s - asked_s))).epsilon(1e-9));
}

TEST_CASE("elastic: what is computed at once fits every device, in whatever order their kinds stand") {
  for (const char* nodes : {"{name: a, server: big}, {name: b, server: small}",
                            "{name: b, server: small}, {name: a, server: big}"}) {
    CAPTURE(nodes);
    const Workplace place;
    place.file(
        "e.yaml",
        fmt::format("experiment: e\nmodel: resnet50\ntraining: {{global_batch: 1024, precision: fp32}}\n"
                    "cluster:\n  nodes: [{}]\n"
                    "  fabric: {{kind: switch, bandwidth: 10Gbps, latency: 30us, protocol: tcp}}\n"
                    "  servers: {{big: {{devices: [{{device: v100-sxm2-32gb}}]}}, "
                    "small: {{devices: [{{device: gtx-1080}}]}}}}\n"
                    "strategy: {{kind: elastic, inner: {{kind: data_parallel, sync: all_reduce}}, "
                    "schedule: [{{at_step: 0, devices: 2}}]}}\n",
                    nodes));
    const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
    CHECK(run["fits"] == true);
    CHECK(run["phases"][0]["peak_memory_bytes"].get<double>() < 8 * std::pow(2, 30));
  }
}

TEST_CASE("elastic: check tells the memory of the phase that needs most, wherever it stands") {
  // Ten times as many images a device while there are two of them.
  for (const char* schedule : {"[{at_step: 0, devices: 2}, {at_step: 20, devices: 8}]",
                               "[{at_step: 0, devices: 8}, {at_step: 20, devices: 2}]"}) {
    CAPTURE(schedule);
    const Workplace place;
    place.file(
        "e.yaml",
        fmt::format("experiment: e\nmodel: resnet50\ntraining: {{global_batch: 256, precision: fp32}}\n"
                    "cluster: {{server: gcp-n1-standard-8-k80, nodes: 8}}\n"
                    "strategy: {{kind: elastic, inner: {{kind: data_parallel, sync: all_reduce}}, "
                    "schedule: {}}}\n",
                    schedule));
    const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
    double most_bytes = 0;
    for (const json& phase : run["phases"])
      most_bytes = std::max(most_bytes, phase["peak_memory_bytes"].get<double>());
    const Finished check = place.convoy({"check", "e.yaml"});
    CAPTURE(check.out);
    CHECK(check.out.find(fmt::format(": {} of 12.0 GiB at the peak", convoy::format_bytes(most_bytes))) !=
          std::string::npos);
  }
}

TEST_CASE("elastic: the trace shows every phase at its place, with the pauses between them") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("global_batch: 512"));
  const Finished run =
      place.convoy({"run", "e.yaml", "--json", "--trace", "--set", "sweep={}", "--out", "out"});
  REQUIRE(run.exit_code == 0);
  const json point = json::parse(run.out)["runs"][0];
  const json trace = json::parse(place.read("out/trace.json"));
  std::map<std::pair<int, int>, std::string> threads;  // "host thread"
  std::map<int, std::string> hosts;
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "process_name") hosts[event["pid"]] = event["args"]["name"];
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      threads[{event["pid"], event["tid"]}] =
          hosts[event["pid"]] + " " + event["args"]["name"].get<std::string>();
  std::map<std::string, std::vector<std::pair<double, double>>> spans;  // seconds
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      const double start_s = event["ts"].get<double>() / 1e6;
      spans[threads[{event["pid"], event["tid"]}]].emplace_back(start_s,
                                                                start_s + event["dur"].get<double>() / 1e6);
    }
  const auto& steps = spans["phases steps"];
  const auto& pauses = spans["phases pauses"];
  REQUIRE(steps.size() == 3);
  REQUIRE(pauses.size() == 2);
  CHECK(spans["phases preparation"].size() == 1);  // nobody gets ready to leave
  for (int i = 0; i < 3; ++i)
    CHECK(steps[i].first == convoy::approx(point["phases"][i]["start_s"].get<double>()));
  for (int i = 0; i < 2; ++i) {
    CHECK(pauses[i].first == convoy::approx(steps[i].second));
    CHECK(pauses[i].second == convoy::approx(steps[i + 1].first));
    CHECK(pauses[i].second - pauses[i].first ==
          convoy::approx(point["reconfigurations"][i]["pause_s"].get<double>()));
  }
  // The eighth device computes in the second phase alone; the first in all three.
  const auto& newcomer = spans["n7 device compute"];
  const auto& first = spans["n0 device compute"];
  REQUIRE(!newcomer.empty());
  CHECK(newcomer.front().first == convoy::approx(steps[1].first));
  CHECK(newcomer.back().second < steps[1].second);
  CHECK(first.front().first == 0);
  CHECK(first.back().first > steps[2].first);
  // Every phase has arrows; each begins once, and ends once and no earlier.
  std::map<int, std::vector<double>> begins, ends;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f")
      (event["ph"] == "s" ? begins : ends)[event["id"]].push_back(event["ts"]);
  REQUIRE(!begins.empty());
  CHECK(begins.size() == ends.size());
  for (const auto& [id, begin] : begins) {
    REQUIRE(begin.size() == 1);
    REQUIRE(ends[id].size() == 1);
    CHECK(begin.front() <= ends[id].front());
  }
  for (const auto& [start_s, end_s] : steps)
    CHECK(std::any_of(begins.begin(), begins.end(), [&, from = start_s, to = end_s](const auto& begin) {
      return begin.second.front() >= 1e6 * from && begin.second.front() <= 1e6 * to;
    }));
}

TEST_CASE("elastic: an epoch has its phases and pauses") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("dataset: {samples: 51200}, global_batch: 512"));
  const json report = json::parse(place.convoy({"run", "e.yaml", "--json"}).out);
  for (const json& point : report["runs"]) {  // 100 steps, the last of them in the last phase
    const json& last = point["phases"][2];
    CHECK(point["epoch_time_s"].get<double>() ==
          convoy::approx(last["start_s"].get<double>() +
                         (100 - last["first_step"].get<double>()) * last["step_time_s"].get<double>()));
  }
}

TEST_CASE("elastic: the table shows the pauses") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("global_batch: 512"));
  const Finished run = place.convoy({"run", "e.yaml"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("pauses") != std::string::npos);
  CHECK(run.out.find("4-8: 13.4 s, 8-3: 13.0 s") != std::string::npos);
}

TEST_CASE("elastic: a proof says on how many devices, and steps of another kind on the same are no pause") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("global_batch: 512"));
  const Finished elastic =
      place.convoy({"check", "--prove", "e.yaml", "--set", "sweep.strategy.reconfigure=[restart]"});
  CHECK(elastic.out.find("proved: 512 images on 4, 8 and then 3 devices ") != std::string::npos);
  place.file(
      "p.yaml",
      "experiment: p\nmodel: cifar_two_conv\ntraining: {batch_per_device: 8, precision: fp32}\n"
      "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring, sync_every: 4, local_from: 9}\n");
  const Finished post_local = place.convoy({"check", "--prove", "p.yaml"});
  CHECK(post_local.out.find("proved: 32 images on 4 devices ") != std::string::npos);
  CHECK(place.convoy({"run", "p.yaml"}).out.find("pauses") == std::string::npos);
  const std::string page = place.read("runs/p/report.html");
  CHECK(page.find("<h2>Phases</h2>") != std::string::npos);
  CHECK(page.find("4 to 4") == std::string::npos);
}

TEST_CASE("elastic: without a global batch it cannot run") {
  const Workplace place;
  place.file("e.yaml", elastic_experiment("batch_per_device: 64"));
  const Finished run = place.convoy({"run", "e.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "e.yaml:3:30: training: elastic needs global_batch, which stays as it is when devices come "
        "and go; "
        "found batch_per_device\n");
}

TEST_CASE("elastic: a queue of jobs takes the runs as throughput") {
  const Workplace place;
  const Finished run = place.convoy(
      {"run", std::string(CONVOY_SOURCE) + "/configs/papers/afs.yaml", "--json", "--set", "jobs.count=40"});
  REQUIRE(run.exit_code == 0);
  const json report = json::parse(run.out);
  REQUIRE(report["schedules"].size() == 18);
  for (const json& schedule : report["schedules"]) {
    CHECK(schedule["jobs"] == 40);
    CHECK(schedule["mean_completion_s"].get<double>() <= schedule["makespan_s"].get<double>());
    CHECK(schedule["busy_share"].get<double>() <= 1);
  }
  const Finished table = place.convoy({"run", std::string(CONVOY_SOURCE) + "/configs/papers/afs.yaml"});
  CHECK(table.out.find("400 jobs, one every 30 s on average (seed 1)\n") != std::string::npos);
}
