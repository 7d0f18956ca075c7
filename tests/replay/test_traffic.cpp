// SPDX-License-Identifier: MIT
// Bandwidth in use over time.
#include <doctest/doctest.h>

#include "sim/replay/traffic.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

struct Sums {
  double sent_bytes = 0, received_bytes = 0;
};

Sums integral(const std::vector<TrafficPoint>& points) {
  Sums sums;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double length_s = points[i + 1].time_s - points[i].time_s;
    sums.sent_bytes += points[i].sent_Bps * length_s;
    sums.received_bytes += points[i].received_Bps * length_s;
  }
  return sums;
}

/// Of the links whose names end so, such as ".nic.up"; one a host, in their order.
std::vector<double> bytes_of_links(const ReplayResult& result, const Machine& machine,
                                   const std::string& ending) {
  std::vector<double> bytes;
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (machine.links[l].name.ends_with(ending)) bytes.push_back(result.links[l].bytes);
  return bytes;
}

}  // namespace

TEST_CASE("traffic: two messages one after the other and one the other way, by hand") {
  // 1 GB/s. h0 sends 3 MB to h1 at once: [0, 3] ms. h1 computes 2 ms, then sends 1 MB back: [2, 3] ms; then 4
  // MB: [3, 7] ms.
  Plan plan;
  const Round there{{{0, 1}}, {1.0}};
  plan.patterns = {Pattern{{{0, 1}}, {there}}, Pattern{{{0, 1}}, {there.reversed()}}};
  plan.communications = {{"there", 0, 3e6}, {"back", 1, 1e6}, {"again", 1, 4e6}};
  Role first = hand::role("first", {0}, {}), second = hand::role("second", {1}, {hand::compute("wait", 2)});
  first.program = {hand::message(Task::Kind::send, "send", 0),
                   hand::message(Task::Kind::receive, "receive", 1),
                   hand::message(Task::Kind::receive, "receive", 2)};
  second.program.push_back(hand::message(Task::Kind::receive, "receive", 0));
  second.program.push_back(hand::message(Task::Kind::send, "send", 1, {0}));
  second.program.push_back(hand::message(Task::Kind::send, "send", 2, {2}));
  plan.roles = {first, second};
  const Machine machine = hand::star(2, 1e9, 0);
  const ReplayResult result = replay(plan, machine, CostModel(Precision::fp32), {});
  const Traffic traffic(result, plan, machine);
  const std::vector<TrafficPoint> expected{{0, 1e9, 0}, {2e-3, 1e9, 1e9}, {3e-3, 0, 1e9}, {7e-3, 0, 0}};
  for (const std::uint32_t host : {0u, 1u}) {
    CAPTURE(host);
    const std::vector<TrafficPoint> points = traffic.of_host(host);
    REQUIRE(points.size() == expected.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CHECK(points[i].time_s == approx(expected[i].time_s).epsilon(1e-9));
      CHECK(points[i].sent_Bps == approx(host == 0 ? expected[i].sent_Bps : expected[i].received_Bps));
      CHECK(points[i].received_Bps == approx(host == 0 ? expected[i].received_Bps : expected[i].sent_Bps));
    }
  }
}

TEST_CASE("traffic: the curves' integrals are what the hosts' links carry") {
  const std::string boxes =
      "{name: lab, nodes: [{name: n, count: 3, server: box, speed_spread: 0.2}], fabric: {kind: switch, "
      "bandwidth: "
      "1GB/s, latency: 20us}, servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: "
      "pcie, "
      "bandwidth: 3GB/s, latency: 5us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, "
      "memory_bandwidth: "
      "500GB/s, efficiency: 1.0}}}";
  const std::string network =
      "{name: small, input: [3, 16, 16], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3, "
      "padding: 1}, "
      "{name: relu, kind: relu}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
  for (const std::string strategy : {"{kind: data_parallel, sync: all_reduce, bucket: 1kB}",
                                     "{kind: data_parallel, sync: all_reduce, fidelity: chunk}",
                                     "{kind: data_parallel, sync: all_reduce, algorithm: hierarchical}",
                                     "{kind: data_parallel, sync: parameter_server, servers: 2}",
                                     "{kind: pipeline, stages: 3, micro_batches: 3}"}) {
    CAPTURE(strategy);
    const lab::Experiment experiment(network, boxes, strategy, 3);
    const ReplayResult result = experiment.run();
    const Traffic traffic(result, experiment.plan(), experiment.machine());
    const std::vector<double> up = bytes_of_links(result, experiment.machine(), ".nic.up"),
                              down = bytes_of_links(result, experiment.machine(), ".nic.down");
    REQUIRE(up.size() == experiment.machine().hosts.size());
    double all_bytes = 0;
    for (std::uint32_t host = 0; host < up.size(); ++host) {
      CAPTURE(host);
      const std::vector<TrafficPoint> points = traffic.of_host(host);
      const Sums sums = integral(points);
      CHECK(sums.sent_bytes == approx(up[host]).epsilon(1e-9));
      CHECK(sums.received_bytes == approx(down[host]).epsilon(1e-9));
      all_bytes += sums.sent_bytes;
      for (std::size_t i = 0; i < points.size(); ++i) {
        CHECK(points[i].time_s <= result.step_time_s * (1 + 1e-12));
        if (i > 0) CHECK(points[i].time_s > points[i - 1].time_s);
      }
      if (!points.empty()) CHECK((points.back().sent_Bps == 0 && points.back().received_Bps == 0));
    }
    CHECK(all_bytes > 0);
  }
}

TEST_CASE("traffic: asynchronous servers answer by a rule, and have no curve") {
  const lab::Experiment experiment(
      "{name: small, input: [3, 8, 8], layers: [{name: flat, kind: flatten}, {name: fc, kind: linear, "
      "out_features: 10}]}",
      "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
      "latency: 20us}, "
      "servers: {box: {devices: [{device: ideal, count: 1}], interconnect: {kind: none}}}, devices: {ideal: "
      "{peak: {fp32: "
      "10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}",
      "{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}", 3);
  const ReplayResult result = experiment.run();
  CHECK(Traffic(result, experiment.plan(), experiment.machine()).of_host(0).empty());
}
