// SPDX-License-Identifier: MIT
// What replays tell over time: spans and memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/replay/replay.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr double millisecond = 1e-3;

bool same_moment(double a_s, double b_s) {
  return std::abs(a_s - b_s) <= 1e-9 * std::max(std::abs(a_s), std::abs(b_s)) + 1e-12;
}

const std::string two_device_boxes =
    "{name: lab, nodes: [{name: n, count: 3, server: box, speed_spread: 0.2}], fabric: {kind: switch, "
    "bandwidth: 1GB/s, latency: 20us}, servers: {box: {devices: [{device: ideal, count: 2}], interconnect: "
    "{kind: pcie, bandwidth: 3GB/s, latency: 5us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: "
    "16GiB, "
    "memory_bandwidth: 500GB/s, efficiency: 1.0}}}";

const std::string small_network =
    "{name: small, input: [3, 16, 16], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3, "
    "padding: 1}, "
    "{name: bn, kind: batch_norm}, {name: relu, kind: relu}, {name: pool, kind: max_pool, kernel: 2, stride: "
    "2}, "
    "{name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";

}  // namespace

TEST_CASE("spans of a stream follow one another, and compute spans add up to the compute time") {
  for (const std::string strategy :
       {"{kind: single, micro_batches: 3}", "{kind: data_parallel, sync: all_reduce, bucket: 1kB}",
        "{kind: data_parallel, sync: parameter_server, servers: 2}"}) {
    CAPTURE(strategy);
    const lab::Experiment experiment(small_network, two_device_boxes, strategy, 3);
    const ReplayResult result = experiment.run();
    for (EndpointId e = 0; e < experiment.machine().endpoint_count(); ++e) {
      CAPTURE(e);
      const std::vector<Span> spans =
          spans_of(result, experiment.plan(), experiment.machine(), experiment.cost(), e);
      double compute_s = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        CHECK(spans[i].end_s > spans[i].start_s);
        CHECK(spans[i].end_s <= result.step_time_s);
        if (spans[i].compute) compute_s += spans[i].end_s - spans[i].start_s;
        if (i == 0 || spans[i].stream != spans[i - 1].stream) continue;
        CHECK(spans[i].start_s >= spans[i - 1].start_s);
        if (spans[i].stream != Task::no_stream) CHECK(spans[i].start_s >= spans[i - 1].end_s);
      }
      CHECK(same_moment(compute_s, result.endpoints[e].compute_s));
      CHECK(spans.empty() == (result.timeline_of[e] == ReplayResult::no_timeline));
    }
  }
}

TEST_CASE("memory returns to where it began, and its peak is the ledger's") {
  for (const std::string strategy :
       {"{kind: single, micro_batches: 3}", "{kind: data_parallel, sync: all_reduce, bucket: 1kB}"}) {
    CAPTURE(strategy);
    const lab::Experiment experiment(small_network, two_device_boxes, strategy, 3);
    const ReplayResult result = experiment.run();
    for (EndpointId e = 0; e < experiment.machine().devices.size(); ++e) {
      CAPTURE(e);
      const std::vector<MemoryPoint> points =
          memory_of(result, experiment.plan(), experiment.machine(), experiment.cost(), e);
      if (result.timeline_of[e] == ReplayResult::no_timeline) {
        CHECK(points.empty());
        continue;
      }
      REQUIRE(points.size() > 10);
      CHECK(points.front().time_s == 0);
      CHECK(points.front().bytes == points.back().bytes);
      double peak_bytes = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (i > 0) CHECK(points[i].time_s >= points[i - 1].time_s);
        for (const double bytes : points[i].bytes) CHECK(bytes >= 0);
        peak_bytes =
            std::max(peak_bytes, std::accumulate(points[i].bytes.begin(), points[i].bytes.end(), 0.0));
      }
      CHECK(peak_bytes == result.endpoints[e].peak_memory_bytes);
      const std::array<double, memory_class_count> at_peak = result.endpoints[e].memory_at_peak;
      CHECK(std::accumulate(at_peak.begin(), at_peak.end(), 0.0) == peak_bytes);
    }
  }
}

TEST_CASE("memory over time by hand") {
  Plan plan;
  Role worker = hand::role("worker", {0}, {hand::compute("forward", 1), hand::compute("backward", 1, {0})});
  worker.resident_bytes[0] = 1000;
  worker.program[0].ops = {hand::op("a", 1, {{MemoryClass::activations, 100}}),
                           hand::op("b", 2, {{MemoryClass::workspace, 50}}, {{MemoryClass::workspace, 50}})};
  worker.program[1].ops = {hand::op("c", 4, {}, {{MemoryClass::activations, 100}})};
  plan.roles = {worker};
  const Machine machine = hand::star(1, 1e9, 0);
  // Below 1 where a step does not wait for its slowest devices.
  for (const double slowdown : {1.0, 0.5, 2.0}) {
    plan.roles[0].slowdown = slowdown;
    const ReplayResult result = replay(plan, machine, CostModel(Precision::fp32), {});
    const std::vector<MemoryPoint> points = memory_of(result, plan, machine, CostModel(Precision::fp32), 0);
    const double expected[][3]{{0, 0, 0},
                               {0, 100, 0},
                               {1 * millisecond, 100, 50},
                               {3 * millisecond, 100, 0},
                               {7 * millisecond, 0, 0}};
    REQUIRE(points.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(same_moment(points[i].time_s, slowdown * expected[i][0]));
      CHECK(points[i].bytes ==
            std::array<double, memory_class_count>{1000, 0, 0, expected[i][1], expected[i][2], 0});
    }
    CHECK(result.endpoints[0].peak_memory_bytes == 1150);
  }
}
