// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

namespace {

using nlohmann::json;

/// Layers of 1 GFLOP forward and 2 backward and four megabytes of parameters each, on devices of 10 TFLOPS.
std::string traced_experiment(int layers, int nodes, const std::string& strategy) {
  std::string text = "experiment: e\nmodel:\n  name: m\n  input: [3, 8, 8]\n  layers:\n";
  for (int l = 0; l < layers; ++l)
    text += "    - {name: c" + std::to_string(l) +
            ", kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000000, output: [10], "
            "memory_bytes: 0}\n";
  return text +
         "training: {batch_per_device: 10, precision: fp32, optimizer: sgd}\n"
         "cluster:\n  name: lab\n  nodes: [{name: n, count: " +
         std::to_string(nodes) +
         ", server: box}]\n  fabric: {kind: switch, bandwidth: 8Gbps, latency: 1ms}\n"
         "  servers: {box: {devices: [{device: ideal, count: 1}]}}\n"
         "  devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
         "1.0}}\nstrategy: " +
         strategy + "\n";
}

struct Traced {
  double step_time_s = 0;
  json events;
};

Traced traced(const std::string& experiment) {
  const Workplace place;
  place.file("e.yaml", experiment);
  const Finished finished = place.convoy({"run", "e.yaml", "--json", "--trace", "--out", "o"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  return {json::parse(finished.out)["runs"][0]["step_time_s"],
          json::parse(place.read("o/trace.json"))["traceEvents"]};
}

/// How long any span that `counts` is under way.
template <class Counts>
double covered_s(const json& events, Counts counts) {
  std::vector<std::pair<double, double>> spans;
  for (const json& event : events)
    if (event["ph"] == "X" && counts(event))
      spans.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  std::sort(spans.begin(), spans.end());
  double covered = 0, until = 0;
  for (const auto& [from, to] : spans) {
    covered += std::max(0.0, to - std::max(from, until));
    until = std::max(until, to);
  }
  return covered * 1e-6;
}

bool is_critical(const json& event) { return event.contains("args") && event["args"].contains("critical"); }

}  // namespace

TEST_CASE("trace: operations tell their FLOPs and images, messages their bytes, as in the closed form") {
  const Traced run = traced(traced_experiment(
      1, 4, "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 1GB, overlap: false}"));
  std::size_t forward = 0, sums = 0;
  for (const json& event : run.events) {
    if (event["ph"] != "X") continue;
    const std::string name = event["name"];
    if (name == "c0.forward") {
      ++forward;
      CHECK(event["args"]["flops"] == 10 * 1e9);
      CHECK(event["args"]["images"] == 10);
    }
    if (name.find("all-reduce") == std::string::npos) continue;
    ++sums;  // each rank sends 2 (N - 1) / N of 4 MB, and receives as much
    CHECK(event["args"]["bytes"].get<double>() == convoy::approx(2 * 1.5 * 4e6).epsilon(1e-9));
  }
  CHECK(forward == 4);
  CHECK(sums == 4);
}

TEST_CASE("trace: what is critical lasts as long as the step, whatever the strategy") {
  // Nothing waits for a host here, so that somebody does something for the step at every moment of it.
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const char* strategy :
       {"{kind: single}", "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 4MB}",
        "{kind: data_parallel, sync: all_reduce, algorithm: tree, bucket: 8MB}",
        "{kind: data_parallel, sync: parameter_server, servers: 2}",
        "{kind: pipeline, stages: 4, micro_batches: 5, schedule: gpipe}",
        "{kind: pipeline, stages: 4, micro_batches: 10, schedule: 1f1b}"}) {
    CAPTURE(strategy);
    const int layers = static_cast<int>(4 + random() % 5);
    CAPTURE(layers);
    const Traced run = traced(traced_experiment(layers, 4, strategy));
    CHECK(covered_s(run.events, is_critical) == convoy::approx(run.step_time_s).epsilon(1e-4));
  }
}

TEST_CASE("trace: a sum that hides behind the backward pass is not critical, the last one is") {
  // Three layers with a bucket each, whose sums take 6 (1 ms + 1 MB / 1 GB/s) = 12 ms and follow one another,
  // while each layer's gradients take 2 ms: after the first gradient everything waits for the network.
  const Traced run = traced(
      traced_experiment(3, 4, "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 4MB}"));
  const auto critical = [&](const std::string& name) {
    for (const json& event : run.events)
      if (event["ph"] == "X" && event["name"] == name) return is_critical(event);
    return false;
  };
  CHECK(critical("c0.forward"));
  CHECK(critical("c2.weight_gradient"));
  CHECK_FALSE(critical("c0.weight_gradient"));
}
