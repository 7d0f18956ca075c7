// SPDX-License-Identifier: MIT
// Messages of one connection, one after the other: against a recursion.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tests/support/approx.h"
#include "tests/support/lab.h"
#include "topologies/transport.h"

using namespace convoy;

namespace {

std::string random_model(std::mt19937& random, int layers) {
  std::string text = "{name: toy, input: [3, 32, 32], layers: [";
  for (int i = 0; i < layers; ++i)
    text += fmt::format(
        "{{name: body{}, kind: custom, forward_flops: {}e7, backward_flops: {}e7, parameters: {}, output: "
        "[10], "
        "memory_bytes: 0}},",
        i, 1 + random() % 200, 1 + random() % 400, 1000 + random() % 1'000'000);
  return text + "]}";
}

/// When the tasks of a program's messages begin or end, by name; and the tasks that they wait for.
struct MessageTimes {
  std::map<std::string, double> end_s, ready_s;
};
MessageTimes message_times(const lab::Experiment& experiment, const ReplayResult& result) {
  const Timeline& timeline = result.timelines[result.timeline_of[0]];
  const std::vector<Task>& program = experiment.plan().roles[timeline.role].program;
  MessageTimes times;
  for (TaskId t = 0; t < program.size(); ++t) {
    times.end_s[program[t].name] = timeline.tasks[t].end_s;
    for (const TaskId before : program[t].after)
      times.ready_s[program[t].name] = std::max(times.ready_s[program[t].name], timeline.tasks[before].end_s);
  }
  return times;
}

}  // namespace

TEST_CASE("in order: tensors go to a server one after the other, and come back so") {
  std::mt19937 random(77);
  for (int i = 0; i < 40; ++i) {
    const int workers = 1 + static_cast<int>(random() % 4), layers = 1 + static_cast<int>(random() % 12);
    const double bandwidth_Bps = 1e7 * static_cast<double>(1 + random() % 200);
    const double latency_s = 1e-6 * static_cast<double>(random() % 2000);
    CAPTURE(i);
    CAPTURE(workers);
    CAPTURE(layers);
    lab::Experiment experiment(random_model(random, layers),
                               lab::star(workers, fmt::format("{}MB/s", bandwidth_Bps / 1e6),
                                         fmt::format("{:.0f}us", latency_s * 1e6)),
                               "{kind: data_parallel, sync: parameter_server, servers: 1}",
                               1 + random() % 20);
    for (Pattern& pattern : experiment.plan().patterns) pattern.in_order = true;
    const ReplayResult result = experiment.run();
    CHECK(experiment.run(false).step_time_s == approx(result.step_time_s).epsilon(1e-12));
    const MessageTimes it = message_times(experiment, result);
    double pushed_s = 0, pulled_s = 0;
    for (std::size_t m = 0; m < experiment.plan().communications.size() / 2; ++m) {
      const double transfer_s = workers * experiment.plan().communications[2 * m].bytes / bandwidth_Bps;
      const std::string push = fmt::format("push {}", m), pull = fmt::format("pull {}", m);
      pushed_s = std::max(pushed_s, it.ready_s.at(push) + latency_s) + transfer_s;
      CHECK(it.end_s.at(push) == approx(pushed_s).epsilon(1e-9));
      pulled_s = std::max(pulled_s, pushed_s + latency_s) + transfer_s;
      CHECK(it.end_s.at(pull) == approx(pulled_s).epsilon(1e-9));
    }
  }
}

TEST_CASE("in order: no device is served later than where messages share the connection, all in all") {
  // One connection has the same bytes to carry in either order, so that the last of them is there as soon.
  std::mt19937 random(78);
  for (int i = 0; i < 20; ++i) {
    lab::Experiment experiment(
        random_model(random, 1 + static_cast<int>(random() % 8)), lab::star(1, "100MB/s", "0us"),
        "{kind: data_parallel, sync: parameter_server, servers: 1, overlap: true, pull: after_all}", 4);
    double step_s[2];
    for (const bool in_order : {false, true}) {
      for (Pattern& pattern : experiment.plan().patterns) pattern.in_order = in_order;
      step_s[in_order] = experiment.run().step_time_s;
    }
    CHECK(step_s[1] == approx(step_s[0]).epsilon(1e-9));
  }
}

TEST_CASE("in order: where every two hosts have a link to themselves, no worker waits for another") {
  std::mt19937 random(79);
  for (int i = 0; i < 12; ++i) {
    std::string nodes;
    double steps_per_s = 0;
    const int workers = 2 + static_cast<int>(random() % 5);
    const double transfer_s = 1e-3 * static_cast<double>(1 + random() % 40);
    for (int w = 0; w < workers; ++w) {
      const double speed = 0.4 + 0.1 * static_cast<double>(random() % 7);
      nodes += fmt::format("{{name: n{}x, count: 1, server: box, speed: {:.1f}}}, ", w, speed);
      steps_per_s += 1 / (6e-3 / speed + 2 * transfer_s);  // 20 images of 0.3 ms
    }
    CAPTURE(nodes);
    CAPTURE(transfer_s);
    const lab::Experiment experiment(
        lab::custom_model(1, 1'000'000),
        fmt::format("{{name: lab, nodes: [{}], fabric: {{kind: full_mesh, bandwidth: {:.9f}GB/s, latency: "
                    "0us}}, {}}}",
                    nodes, 4e-3 / transfer_s, lab::ideal_servers()),
        "{kind: data_parallel, sync: parameter_server, mode: async, overlap: false}", 20);
    for (const Pattern& pattern : experiment.plan().patterns) REQUIRE(pattern.in_order);
    CHECK(experiment.run().step_time_s == approx(workers / steps_per_s).epsilon(1e-6));
  }
}

TEST_CASE("in order: ZeroMQ keeps messages in order, and gRPC interleaves them") {
  for (const auto& [library, in_order] : {std::pair{"zmq", true}, std::pair{"grpc", false}}) {
    for (const char* protocol : {"tcp", "rdma"}) {
      CAPTURE(library);
      CAPTURE(protocol);
      CHECK(load_transport(fmt::format("{}-{}", library, protocol), {}).in_order == in_order);
      std::string cluster = lab::star(2, "1GB/s", "20us");
      cluster.replace(cluster.find("kind: switch"), 12, fmt::format("kind: switch, protocol: {}", protocol));
      const lab::Experiment experiment(
          lab::custom_model(3, 250'000), cluster,
          fmt::format("{{kind: data_parallel, sync: parameter_server, transport: {}}}", library), 4);
      for (const Pattern& pattern : experiment.plan().patterns) CHECK(pattern.in_order == in_order);
    }
  }
}
