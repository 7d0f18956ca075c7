// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/input_error.h"
#include "sim/lowering/server_plan.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr int server_layers = 5;
constexpr double tensor_bytes = 4.0 * 300'000, W = server_layers * tensor_bytes;

/// `nodes` hosts of `devices` devices each.
std::string cluster(int nodes, int devices, bool pcie, const std::string& rest = "") {
  return fmt::format(
      "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: 1GB/s, "
      "latency: "
      "20us}}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {}{}}}}}, devices: "
      "{{ideal: "
      "{{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}}}}",
      nodes, devices, pcie ? "{kind: pcie, bandwidth: 3GB/s, latency: 5us}" : "{kind: none}", rest);
}

std::string strategy(int servers, bool dedicated, bool even, bool overlap, bool local,
                     const std::string& rest = "") {
  return fmt::format(
      "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: {}, overlap: {}, "
      "local_aggregation: {}{}}}",
      servers, dedicated ? "dedicated" : "colocated", even ? "even" : "tensor", overlap, local, rest);
}

}  // namespace

TEST_CASE("bytes of every combination are those of counting messages") {
  for (const int nodes : {1, 3, 4}) {
    for (const int g : {1, 2, 3}) {
      for (const int servers : {1, 2, 4}) {
        for (int bits = 0; bits < 32; ++bits) {
          const bool with_pcie = bits & 1, dedicated = bits & 2, even = bits & 4, overlap = bits & 8,
                     local = bits & 16;
          if (!dedicated && servers > nodes) continue;
          CAPTURE(nodes);
          CAPTURE(g);
          CAPTURE(servers);
          CAPTURE(bits);
          const lab::Experiment experiment(lab::custom_model(server_layers, 300'000),
                                           cluster(nodes, g, with_pcie),
                                           strategy(servers, dedicated, even, overlap, local), 4);
          const ReplayResult result = experiment.run();
          // One way. Without PCIe device and host memory are one place, and what stays there is not sent; so
          // it is with one device a host, whose way is the fabric alone.
          const bool pcie = with_pcie && g > 1;
          const double devices = nodes * g;
          double expected = 0;
          if (local)
            // Devices to their host, hosts to servers; every byte's server is one of the hosts if colocated.
            expected = (pcie ? devices * W : 0) + (dedicated ? nodes * W : (nodes - 1) * W);
          else
            // Every byte's server has g devices beside it if colocated.
            expected = devices * W - (dedicated || pcie ? 0 : g * W);
          CHECK(result.comm_bytes == approx(2 * expected).epsilon(1e-12));
          for (EndpointId e = 0; e < experiment.machine().endpoint_count(); ++e)
            CHECK(result.endpoints[e].sent_bytes ==
                  approx(result.endpoints[e].received_bytes).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("each dedicated server's bytes: its tensors, or an equal part, from every client") {
  // 5 tensors on 2 servers: 3 and 2.
  for (const bool local : {false, true}) {
    CAPTURE(local);
    const double clients = local ? 3 : 6;
    const auto received = [&](bool even, std::uint32_t server) {
      const lab::Experiment experiment(lab::custom_model(server_layers, 300'000), cluster(3, 2, true),
                                       strategy(2, true, even, true, local), 4);
      return experiment.run().endpoints[experiment.machine().host_endpoint(3 + server)].received_bytes;
    };
    CHECK(received(false, 0) == clients * 3 * tensor_bytes);
    CHECK(received(false, 1) == clients * 2 * tensor_bytes);
    CHECK(received(true, 0) == approx(clients * W / 2));
    CHECK(received(true, 1) == approx(clients * W / 2));
  }
}

TEST_CASE("host CPUs add up at their rate: each client's bytes on servers, each device's on nodes") {
  // 3 nodes of 2 devices in one place, no time on the way (1 TB/s, no latency); 2 GB/s of adding.
  // 1 tensor of 8 MB. Without aggregation: 6 x 8 MB / 2 GB/s = 24 ms.
  const auto step_s = [](const std::string& servers) {
    std::string text = cluster(3, 2, false, ", host: {reduce_bandwidth: 2GB/s}");
    text.replace(text.find("bandwidth: 1GB/s, latency: 20us"), 31, "bandwidth: 1000000GB/s, latency: 0us");
    return lab::Experiment(lab::custom_model(1, 2'000'000), text, servers, 10).run().step_time_s;
  };
  const double compute_s = 10 * 3e-4;
  CHECK(step_s(strategy(1, true, false, false, false)) == approx(compute_s + 24e-3).epsilon(1e-4));
  // With: 2 x 8 MB on each node, 8 ms, then 3 x 8 MB on the server, 12 ms.
  CHECK(step_s(strategy(1, true, false, false, true)) == approx(compute_s + 8e-3 + 12e-3).epsilon(1e-4));
  // A server on a node has that node's sum already: 2 x 8 MB.
  CHECK(step_s(strategy(1, false, false, false, true)) == approx(compute_s + 8e-3 + 8e-3).epsilon(1e-4));
  // Two servers add up half of it each.
  CHECK(step_s(strategy(2, true, true, false, false)) == approx(compute_s + 12e-3).epsilon(1e-4));
  CHECK(step_s(strategy(2, true, true, false, true)) == approx(compute_s + 8e-3 + 6e-3).epsilon(1e-4));
}

TEST_CASE("pull after all: nothing comes back before the server's last update") {
  // 2 tensors of 1 MB each on one server, one worker: 1 ms a push. Ready at 4 and 6 ms (batch 10, see the
  // laws' overlap case). As ready: back at 6 and 8 ms. After all: both pulls start at 7 ms and share: 9 ms.
  const auto step_s = [](const std::string& pull) {
    return lab::Experiment(lab::custom_model(2, 250'000), lab::star(1, "1GB/s", "0us"),
                           strategy(1, true, false, true, false, ", pull: " + pull), 10)
        .run()
        .step_time_s;
  };
  CHECK(step_s("as_ready") == approx(8e-3).epsilon(1e-9));
  CHECK(step_s("after_all") == approx(9e-3).epsilon(1e-9));
}

TEST_CASE("pull after all: a node hands out what other servers send as it comes") {
  // Two nodes, two colocated servers, tensors of 1 MB: the second layer's (pushed first, at 4 ms) is on n1,
  // the first layer's (pushed at 6 ms) on n0. n0 has the second layer back at 6 ms, before its own update.
  const lab::Experiment experiment(lab::custom_model(2, 250'000), lab::star(2, "1GB/s", "0us"),
                                   strategy(2, false, false, true, true, ", pull: after_all"), 10);
  const ReplayResult result = experiment.run();
  const Timeline& host = result.timelines[result.timeline_of[experiment.machine().host_endpoint(0)]];
  const std::vector<Task>& program = experiment.plan().roles[host.role].program;
  bool found = false;
  for (TaskId t = 0; t < program.size(); ++t)
    if (program[t].name == "hand out 0") {
      found = true;
      CHECK(host.tasks[t].end_s == approx(6e-3).epsilon(1e-9));
    }
  CHECK(found);
}

TEST_CASE("communications are named after their message, with servers and within nodes") {
  const lab::Experiment experiment(lab::custom_model(2, 250'000), cluster(2, 2, true),
                                   strategy(1, true, false, true, true), 10);
  std::vector<std::string> names;
  for (const Communication& comm : experiment.plan().communications) names.push_back(comm.name);
  CHECK(names == std::vector<std::string>{"push 0 to servers", "pull 0 from servers", "push 0 to node",
                                          "pull 0 from node", "push 1 to servers", "pull 1 from servers",
                                          "push 1 to node", "pull 1 from node"});
}

TEST_CASE("workers keep no optimizer state and do no update") {
  const lab::Experiment experiment(
      "{name: net, input: [3, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 4, kernel: 3}]}",
      lab::star(2, "1GB/s", "1us"), strategy(1, true, false, true, false), 4);
  const Role& worker = experiment.plan().roles[0];
  CHECK(worker.resident_bytes[static_cast<std::size_t>(MemoryClass::optimizer)] == 0);
  for (const Task& task : worker.program)
    for (const PlanOp& op : task.ops) CHECK(op.work.phase != Phase::update);
}

TEST_CASE("more colocated servers than nodes are an error at their number") {
  CHECK_THROWS_WITH_AS(
      lab::Experiment(lab::custom_model(1, 1000), lab::star(2, "1GB/s", "1us"),
                      "{kind: data_parallel, sync: parameter_server, servers: 3, placement: colocated}", 4),
      "strategy:1:56: strategy.servers: 3 colocated servers need a node each, and there are 2; at most 2 "
      "here, or "
      "placement: dedicated",
      InputError);
  CHECK_NOTHROW(lab::Experiment(lab::custom_model(1, 1000), lab::star(2, "1GB/s", "1us"),
                                "{kind: data_parallel, sync: parameter_server, servers: 3}", 4));
}

TEST_CASE("a model without parameters has nothing to push, in every combination") {
  for (int bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    const lab::Experiment experiment(lab::custom_model(2, 0), cluster(2, 2, true),
                                     strategy(1, bits & 1, bits & 2, bits & 4, bits & 8), 10);
    CHECK(experiment.plan().communications.empty());
    // SimGrid's clock runs on from replay to replay of a process: a step's end minus its beginning is
    // rounded.
    CHECK(experiment.run().step_time_s == approx(2 * 10 * 3e-4).epsilon(1e-9));
  }
}
