// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

namespace {

using nlohmann::json;

/// Gains by change; the algorithm's row as "best algorithm".
std::map<std::string, json> counterfactuals(const json& run) {
  std::map<std::string, json> rows;
  for (const json& row : run["counterfactuals"]) {
    std::string change = row["change"];
    rows[change.substr(0, change.find(':'))] = row;
  }
  return rows;
}

/// `layers` of 1 GFLOP forward and 2 backward an image on a device of 10 TFLOPS; a million parameters each.
std::string experiment(const std::string& fabric, int nodes, const std::string& algorithm, int layers = 1) {
  std::string text = "experiment: e\nmodel:\n  name: m\n  input: [3, 8, 8]\n  layers:\n";
  for (int l = 0; l < layers; ++l)
    text += "    - {name: c" + std::to_string(l) +
            ", kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000000, output: [10], "
            "memory_bytes: 0}\n";
  return text +
         "training: {batch_per_device: 10, precision: fp32, optimizer: sgd, dataset: {samples: 36000}}\n"
         "cluster:\n  name: lab\n  nodes: [{name: n, count: " +
         std::to_string(nodes) + ", server: box}]\n  fabric: " + fabric +
         "\n  servers: {box: {devices: [{device: ideal, count: 1}], price: 2.00USD/h}}\n"
         "  devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
         "1.0}}\n"
         "strategy: {kind: data_parallel, sync: all_reduce, algorithm: " +
         algorithm + ", bucket: 1GB, overlap: false}\n";
}

}  // namespace

TEST_CASE("explain: gains in the closed form of a ring") {
  const Workplace place;
  place.file("e.yaml", experiment("{kind: switch, bandwidth: 8Gbps, latency: 1ms}", 4, "ring"));
  const Finished finished = place.convoy({"run", "e.yaml", "--explain", "--json"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  const json run = json::parse(finished.out)["runs"][0];
  // 10 images x 3 GFLOP / 10 TFLOPS, and 2 (N - 1) (alpha + S / (N B)) with N = 4, S = 4 MB, B = 1 GB/s
  const double compute_s = 10 * 3e9 / 10e12, latency_s = 6 * 1e-3, bytes_s = 6 * 1e6 / 1e9;
  CHECK(run["step_time_s"].get<double>() == convoy::approx(compute_s + latency_s + bytes_s).epsilon(1e-6));
  const auto rows = counterfactuals(run);
  const auto gain = [&](const char* change) { return rows.at(change)["gain_s"].get<double>(); };
  CHECK(gain("all links twice as fast") == convoy::approx(bytes_s / 2).epsilon(1e-6));
  CHECK(gain("no latency") == convoy::approx(latency_s).epsilon(1e-6));
  CHECK(gain("all devices twice as fast") == convoy::approx(compute_s / 2).epsilon(1e-6));
  // An epoch of 900 steps on four hosts of 2 USD/h.
  CHECK(rows.at("no latency")["gain_usd_per_epoch"].get<double>() ==
        convoy::approx(900 * latency_s * 8 / 3600).epsilon(1e-6));
  // Five hosts: 50 images take compute + 8 (alpha + S / (5 B)); of 40 images four fifths.
  const double five_s = compute_s + 8 * (1e-3 + 0.8e6 / 1e9);
  CHECK(rows.at("one more server")["step_time_s"].get<double>() == convoy::approx(five_s).epsilon(1e-6));
  CHECK(gain("one more server") ==
        convoy::approx(compute_s + latency_s + bytes_s - five_s * 4 / 5).epsilon(1e-6));
}

TEST_CASE(
    "explain: the table for people has the gains of the JSON, and tells no money of what gains no time") {
  const Workplace place;
  // Without the latency a step takes 60 ns of 9 ms less.
  place.file("e.yaml", experiment("{kind: switch, bandwidth: 8Gbps, latency: 10ns}", 4, "ring"));
  const json run = json::parse(place.convoy({"run", "e.yaml", "--explain", "--json"}).out)["runs"][0];
  const std::string text = place.convoy({"run", "e.yaml", "--explain"}).out;
  const double step_s = run["step_time_s"], epoch_usd = run["cost_usd_per_epoch"];
  int gains = 0, without = 0;
  for (const json& row : run["counterfactuals"]) {
    const std::string change = row["change"];
    CAPTURE(change);
    const std::size_t begin = text.find("\n  " + change + "  ");
    REQUIRE(begin != std::string::npos);
    const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
    CAPTURE(line);
    const double gain_s = row["gain_s"], usd = row["gain_usd_per_epoch"];
    const bool gains_time = std::abs(gain_s) >= 5e-4 * step_s;
    ++(gains_time ? gains : without);
    CHECK((line.find("  no gain  ") == std::string::npos) == gains_time);
    if (gains_time) {
      const std::size_t share = line.find(" (");
      REQUIRE(share != std::string::npos);
      CHECK(std::stod(line.substr(share + 2)) ==
            convoy::approx(100 * std::abs(gain_s) / step_s).epsilon(0.05));
      CHECK(line.find(gain_s > 0 ? " %) less" : " %) more") != std::string::npos);
    }
    const std::string money =
        gains_time || std::abs(usd) >= 1e-3 * epoch_usd
            ? fmt::format("{:.3g} USD an epoch {}", std::abs(usd), usd > 0 ? "less" : "more")
            : "as many USD an epoch";
    CHECK(line.find("  " + money) != std::string::npos);
  }
  CHECK(gains >= 3);
  CHECK(without >= 1);
}

TEST_CASE("explain: a latency bottleneck names the algorithm that mends it, auto says what it chose") {
  const Workplace place;
  place.file("e.yaml", experiment("{kind: switch, bandwidth: 1000Gbps, latency: 5ms}", 16, "ring"));
  const json ring = json::parse(place.convoy({"run", "e.yaml", "--explain", "--json"}).out)["runs"][0];
  CHECK(ring["bottleneck"]["kind"] == "latency");
  const std::string text = ring["bottleneck"]["text"];
  const auto rows = counterfactuals(ring);
  const std::string best = rows.at("best algorithm")["change"].get<std::string>().substr(16);
  CHECK(text.find("algorithm: " + best + " would save") != std::string::npos);
  CHECK(rows.at("best algorithm")["gain_s"].get<double>() > 0.05);
  const Finished chosen = place.convoy({"run", "e.yaml", "--explain", "--set", "strategy.algorithm=auto"});
  CHECK(chosen.out.find("(auto chose ") != std::string::npos);
}

TEST_CASE("explain: without it nothing of it is in the results, a sweep has it for every run, for any jobs") {
  const Workplace place;
  place.file("e.yaml", experiment("{kind: switch, bandwidth: 8Gbps, latency: 1ms}", 4, "ring") +
                           "sweep: {training.batch_per_device: [10, 20]}\n");
  CHECK(place.convoy({"run", "e.yaml", "--json"}).out.find("counterfactuals") == std::string::npos);
  const Finished one = place.convoy({"run", "e.yaml", "--explain", "--json", "--jobs", "1"});
  const Finished two = place.convoy({"run", "e.yaml", "--explain", "--json", "--jobs", "2"});
  CHECK(one.out == two.out);
  const json report = json::parse(one.out);
  for (const json& run : report["runs"]) {
    const json& rows = run["counterfactuals"];
    CHECK(rows.size() >= 5);
    for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1]["gain_s"] >= rows[i]["gain_s"]);
  }
}

TEST_CASE("explain: changes of keys are what a run with these keys says, by step, memory and images") {
  const Workplace place;
  const std::string text =
      "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 16, precision: fp32, optimizer: "
      "momentum}\n"
      "cluster: {server: aws-p3.8xlarge, nodes: 2}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n";
  place.file("e.yaml", text);
  const json run = json::parse(place.convoy({"run", "e.yaml", "--explain", "--json"}).out)["runs"][0];
  const auto same = [&](const std::string& change, const std::vector<std::string>& settings) {
    CAPTURE(change);
    std::vector<std::string> arguments{"run", "e.yaml", "--json"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const json other = json::parse(place.convoy(arguments).out)["runs"][0];
    std::size_t found = 0;
    for (const json& row : run["counterfactuals"]) {
      if (row["change"] != change) continue;
      ++found;
      for (const char* field : {"step_time_s", "global_batch", "peak_memory_bytes", "fits"})
        CHECK(row[field] == other[field]);
      CHECK(row["gain_s"].get<double>() ==
            convoy::approx(run["step_time_s"].get<double>() - other["step_time_s"].get<double>() *
                                                                  run["global_batch"].get<double>() /
                                                                  other["global_batch"].get<double>())
                .epsilon(1e-9));
    }
    CHECK(found == 1);
  };
  same("precision: fp16", {"training.precision=fp16"});
  same("layout: nhwc", {"training.layout=nhwc"});
  same("execution: graph", {"training.execution=graph"});
  same("batch twice as large", {"training.batch_per_device=32"});
  same("batch half as large", {"training.batch_per_device=8"});
  same("batch twice as large, accumulated in twice as many micro-batches",
       {"training.batch_per_device=32", "strategy.micro_batches=2"});
  same("compression: fp16", {"strategy.compression=fp16"});
  same("one more server", {"cluster.nodes=3"});
  std::map<std::string, std::string> refused;
  for (const json& row : run["refused_changes"]) refused[row["change"]] = row["reason"];
  CHECK(refused.at("precision: bf16") == "a device of the cluster cannot run bf16");
  CHECK(refused.contains("one more NIC a server"));  // the fabric is the server's
  for (const auto& [change, reason] : refused) CHECK(reason.find(":1:") == std::string::npos);
}

TEST_CASE("explain: a loader that binds gains by workers and by its library") {
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 63, precision: fp16, optimizer: "
             "momentum, input: {kind: jpeg, library: pil, workers_per_device: 1, cached: true}}\n"
             "cluster: {server: aws-p3.2xlarge, nodes: 1}\nstrategy: {kind: single}\n");
  const Finished finished = place.convoy({"run", "e.yaml", "--explain", "--json"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  const json run = json::parse(finished.out)["runs"][0];
  CHECK(run["bottleneck"]["kind"] == "input");
  const auto rows = counterfactuals(run);
  // Twice the workers are twice the rate, as long as there are cores: 4 of them here.
  CHECK(rows.at("twice as many loader workers a device")["step_time_s"].get<double>() ==
        convoy::approx(run["step_time_s"].get<double>() / 2).epsilon(1e-6));
  CHECK(rows.at("best other library")["gain_s"].get<double>() > 0);
  CHECK(run["counterfactuals"][0]["change"] == "input pipeline unlimited");
  const json& refused = run["refused_changes"];
  CHECK(std::count(refused.begin(), refused.end(),
                   json{{"change", "batch half as large"}, {"reason", "63 images cannot be halved"}}) == 1);
}

namespace {

/// 20 layers of so many FLOP forward and twice as many backward an image on a device of 10 TFLOPS behind a
/// host that issues PyTorch's operations one by one.
/// @param host of the server: ", host: {issue_factor: 2}"
std::string issued_experiment(const std::string& forward_flops, const std::string& training = "",
                              const std::string& host = "") {
  std::string text = "experiment: e\nmodel:\n  name: m\n  input: [3, 8, 8]\n  layers:\n";
  for (int l = 0; l < 20; ++l)
    text += "    - {name: c" + std::to_string(l) + ", kind: custom, forward_flops: " + forward_flops +
            ", backward_flops: 1e3, parameters: 0, output: [10], memory_bytes: 0}\n";
  return text + "training: {batch_per_device: 1, precision: fp32, optimizer: sgd, framework: pytorch" +
         training +
         "}\ncluster:\n  name: lab\n  nodes: [{name: n, count: 1, server: box}]\n"
         "  fabric: {kind: switch, bandwidth: 8Gbps, latency: 1ms}\n"
         "  servers: {box: {devices: [{device: quick, count: 1}]" +
         host +
         "}}\n"
         "  devices: {quick: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
         "1.0, issue_factor: 1}}\nstrategy: {kind: single}\n";
}

}  // namespace

TEST_CASE(
    "explain: a device that waits for its host gains by a faster host and a leaner execution, not by "
    "itself") {
  const Workplace place;
  place.file("e.yaml", issued_experiment("1e3"));
  const Finished finished = place.convoy({"run", "e.yaml", "--explain", "--json"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  const json run = json::parse(finished.out)["runs"][0];
  const double step_s = run["step_time_s"];
  // What the device runs takes nothing next to its issue: the step is the issue of all operations.
  CHECK(run["bottleneck"]["kind"] == "issue");
  CHECK(run["issue_wait_s"].get<double>() == convoy::approx(step_s).epsilon(1e-3));
  const auto rows = counterfactuals(run);
  const auto gain = [&](const char* change) { return rows.at(change)["gain_s"].get<double>(); };
  CHECK(gain("hosts issue operations twice as fast") == convoy::approx(step_s / 2).epsilon(1e-3));
  CHECK(gain("all devices twice as fast") < step_s / 1000);
  std::set<std::string> executions;
  for (const json& row : run["counterfactuals"])
    if (const std::string change = row["change"]; change.starts_with("execution: ")) {
      executions.insert(change.substr(11));
      CHECK(row["gain_s"].get<double>() > 0);
    }
  CHECK(executions == std::set<std::string>{"compiled", "graph"});
}

TEST_CASE(
    "a host's issue_factor stretches steps that wait for it, and others by their first operation alone") {
  const Workplace place;
  const auto step_s = [&](const char* forward_flops, const char* host) {
    place.file("e.yaml", issued_experiment(forward_flops, "", host));
    const Finished finished = place.convoy({"run", "e.yaml", "--json"});
    CAPTURE(finished.err);
    REQUIRE(finished.exit_code == 0);
    return json::parse(finished.out)["runs"][0]["step_time_s"].get<double>();
  };
  constexpr auto slower = ", host: {issue_factor: 2.5}", faster = ", host: {issue_factor: 0.4}";
  // What the device runs takes nothing next to its issue: the step is the issue of all operations.
  const double issued_s = step_s("1e3", "");
  CHECK(step_s("1e3", slower) == convoy::approx(2.5 * issued_s).epsilon(1e-3));
  CHECK(step_s("1e3", faster) == convoy::approx(0.4 * issued_s).epsilon(1e-3));
  // 20 layers of 0.1 s forward: the device begins when the first operation is issued and never waits again.
  // PyTorch issues a forward operation in no less time than a backward one: 40 operations and no update,
  // since there are no parameters.
  const double typical_s = step_s("1e12", ""), first_s = (step_s("1e12", slower) - typical_s) / 1.5;
  CHECK(first_s > issued_s / 40 * (1 - 1e-3));
  CHECK(first_s < issued_s / 20);
  CHECK(typical_s - step_s("1e12", faster) == convoy::approx(0.6 * first_s).epsilon(1e-6));
}

TEST_CASE("explain: where the device is behind its host, it waits for the first operation alone") {
  const Workplace place;
  place.file("e.yaml", issued_experiment("1e12"));
  const json run = json::parse(place.convoy({"run", "e.yaml", "--explain", "--json"}).out)["runs"][0];
  const double step_s = run["step_time_s"], wait_s = run["issue_wait_s"];
  CHECK(run["bottleneck"]["kind"] == "compute");
  CHECK(wait_s > 0);
  CHECK(wait_s < step_s / 1000);
  CHECK(counterfactuals(run).at("all devices twice as fast")["gain_s"].get<double>() ==
        convoy::approx(step_s / 2).epsilon(1e-3));
}

TEST_CASE("explain: hosts of a measured device are faster than they were when it was measured") {
  const Workplace place;
  place.file("e.yaml", issued_experiment("1e3", ", anchor: {images_per_s: 100, batch: 1}"));
  const json run = json::parse(place.convoy({"run", "e.yaml", "--explain", "--json"}).out)["runs"][0];
  CHECK(run["step_time_s"].get<double>() == convoy::approx(0.01).epsilon(1e-9));
  CHECK(counterfactuals(run).at("hosts issue operations twice as fast")["gain_s"].get<double>() ==
        convoy::approx(0.005).epsilon(1e-3));
  for (const json& row : run["counterfactuals"])
    CHECK(row["change"].get<std::string>().find("execution") == std::string::npos);
}
