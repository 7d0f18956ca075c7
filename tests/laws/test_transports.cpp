// SPDX-License-Identifier: MIT
// What software between devices costs: closed forms, and that it only ever adds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/support/approx.h"
#include "tests/support/lab.h"
#include "topologies/transport.h"

using namespace convoy;

namespace {

/// `nodes` hosts of `devices` each; exact devices of 10 TFLOPS and 1 TB/s.
std::string cluster(int nodes, int devices, const std::string& fabric, const std::string& server = "",
                    const std::string& device = "") {
  return fmt::format(
      "{{nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, {}}}, "
      "servers: {{box: {{devices: [{{device: exact, count: {}}}], interconnect: {{kind: pcie, bandwidth: "
      "10GB/s, "
      "latency: 2us}}{}}}}}, "
      "devices: {{exact: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 1TB/s, efficiency: "
      "1.0{}}}}}}}",
      nodes, fabric, devices, server, device);
}

double step_s(const std::string& model, const std::string& cluster, const std::string& strategy,
              bool fold = true) {
  return lab::Experiment(model, cluster, strategy, 4).run(fold).step_time_s;
}

double update_s(const lab::Experiment& experiment) {
  double sum_s = 0;
  for (const Operation& operation : experiment.graph().operations)
    if (operation.phase == Phase::update)
      sum_s += experiment.cost().time_s(operation.work, 1, experiment.machine().device_types[0]);
  return sum_s;
}

constexpr double compute_s = 4 * 3e9 / 10e12;  // batch 4, a layer of 1 + 2 GFLOP
constexpr double bytes = 4e7;                  // 10^7 parameters
const std::string one_layer = lab::custom_model(1, 10'000'000);

const std::vector<std::string> transport_strategies{
    "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 2MB",
    "{kind: data_parallel, sync: all_reduce, algorithm: tree, fidelity: chunk",
    "{kind: data_parallel, sync: all_reduce, algorithm: hierarchical, overlap: false",
    "{kind: data_parallel, sync: all_reduce, zero: 2, bucket: 2MB",
    "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: tensor",
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: even, "
    "local_aggregation: host",
    "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: even, bucket: 2MB, "
    "local_aggregation: owner",
    // One bucket: where reduce-scatters and all-gathers of several share links, a later start can be luckier.
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: even, "
    "overlap: false, local_aggregation: ring, pull: after_all",
    "{kind: data_parallel, sync: parameter_server, servers: 2, local_aggregation: owner, pull: at_first_use",
    "{kind: data_parallel, sync: parameter_server, servers: 1, pull: at_first_use",
};

}  // namespace

TEST_CASE(
    "ring over TCP: start, latencies with the messages' cost, and the narrowest of wire and connections") {
  const Transport nccl = load_transport("nccl-tcp", {});
  for (const int nodes : {2, 3, 8})
    for (const double wire_Bps : {1e9, 12.5e9}) {
      CAPTURE(nodes);
      CAPTURE(wire_Bps);
      const lab::Experiment experiment(
          one_layer,
          cluster(nodes, 1, fmt::format("bandwidth: {}GB/s, latency: 20us, protocol: tcp", wire_Bps / 1e9)),
          "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false}", 4);
      const double rate_Bps = std::min({wire_Bps, nccl.pair_bandwidth_Bps(), nccl.host_bandwidth_Bps / 2});
      CHECK(experiment.run().step_time_s ==
            approx(compute_s + nccl.start_s + 2 * (nodes - 1) * (20e-6 + nccl.message_s) +
                   2.0 * (nodes - 1) / nodes * bytes / rate_Bps + update_s(experiment)));
    }
}

TEST_CASE(
    "ring through host memory: a device's lanes both ways, or its part of the uplink of its PCIe switch") {
  // Four devices on lanes of 10 GB/s, of which those that send and receive have 80 % together, 4 GB/s a way;
  // all four behind one uplink of 10 GB/s have 2.5 each, two behind each of two have 5.
  const struct {
    const char* switches;
    double rate_Bps;
  } layouts[] = {{"[[0, 1, 2, 3]]", 2.5e9}, {"[[0, 1], [2, 3]]", 4e9}, {"[[0], [1], [2], [3]]", 4e9}};
  for (const auto& layout : layouts) {
    CAPTURE(layout.switches);
    std::string machine = cluster(1, 4, "bandwidth: 1GB/s, latency: 20us",
                                  ", peer_to_peer: false, host: {staging_bandwidth: 1000GB/s}");
    machine.replace(machine.find("latency: 2us"), 12,
                    fmt::format("latency: 2us, switches: {}", layout.switches));
    const lab::Experiment experiment(
        one_layer, machine, "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false}", 4);
    CHECK(experiment.run().step_time_s ==
          approx(compute_s + 6 * (2e-6 + bytes / 4 / layout.rate_Bps) + update_s(experiment)));
  }
}

TEST_CASE("a device's lanes are its own, however narrow the uplink of its switch") {
  const lab::Experiment two(one_layer,
                            "{server: {base: workstation-8-rtx-2080-ti, interconnect.uplink: 6GB/s}, nodes: "
                            "1, devices_per_node: 2}",
                            "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false}", 4);
  for (const Link& link : two.machine().links)
    if (link.name == "n0.gpu0.staging") CHECK(link.bandwidth_Bps == approx(0.8 * 0.762 * 15.75e9));
}

TEST_CASE(
    "parameter server over gRPC: devices of a host share its connection, and every call is serialised") {
  const Transport grpc = load_transport("grpc-tcp", {});
  const lab::Experiment experiment(
      one_layer, cluster(2, 2, "bandwidth: 100Gbps, latency: 20us, protocol: tcp"),
      "{kind: data_parallel, sync: parameter_server, overlap: false, transport: grpc}", 4);
  const double way_s = 1e-6 + 20e-6 + grpc.message_s + grpc.call_s +
                       2 * bytes / grpc.serialise_Bps * (1 + bytes / grpc.serialise_halved_bytes);
  const double host_Bps = std::min(grpc.pair_bandwidth_Bps(), grpc.host_bandwidth_Bps / 2);
  CHECK(experiment.run().step_time_s == approx(compute_s + 2 * (way_s + 2 * bytes / host_Bps)));
}

TEST_CASE("sums on the owner and by ring on one node") {
  const int n = 3;
  const std::string machine = cluster(1, n, "bandwidth: 1GB/s, latency: 20us");
  const lab::Experiment owner(one_layer, machine,
                              "{kind: data_parallel, sync: parameter_server, placement: colocated, "
                              "local_aggregation: owner}",
                              4);
  const double share_s = (n - 1) * bytes / 10e9 + 2e-6, sum_s = (n + 1) * bytes / 1e12;
  CHECK(owner.run().step_time_s == approx(compute_s + 2 * share_s + sum_s + update_s(owner)));
  const lab::Experiment ring(one_layer, machine,
                             "{kind: data_parallel, sync: parameter_server, placement: colocated, "
                             "local_aggregation: ring}",
                             4);
  const double half_s = (n - 1) * (bytes / n / 10e9 + 2e-6);
  CHECK(ring.run().step_time_s == approx(compute_s + 2 * half_s + update_s(ring) / n));
  CHECK(ring.run().comm_bytes == approx(2 * (n - 1) * bytes));
  CHECK(owner.run().comm_bytes == approx(2 * (n - 1) * bytes));
}

TEST_CASE("sums on devices send a node's gradients to the servers once") {
  for (const char* where : {"host", "owner", "ring"}) {
    CAPTURE(where);
    const lab::Experiment experiment(
        lab::custom_model(3, 1'000'000), cluster(2, 4, "bandwidth: 1GB/s, latency: 20us"),
        fmt::format("{{kind: data_parallel, sync: parameter_server, servers: 2, local_aggregation: {}}}",
                    where),
        4);
    const ReplayResult result = experiment.run();
    double nic_bytes = 0;
    for (std::size_t l = 0; l < result.links.size(); ++l)
      if (experiment.machine().links[l].name.ends_with("nic.up")) nic_bytes += result.links[l].bytes;
    CHECK(nic_bytes == approx(2 * 2 * 3 * 4e6));  // two nodes, there and back, three tensors of 4 MB
  }
}

TEST_CASE("a host adds up its devices' gradients while those of other hosts are on their way") {
  const auto step = [](int layers, const char* latency) {
    return step_s(lab::custom_model(layers, 1'000'000),
                  cluster(2, 2, fmt::format("bandwidth: 1GB/s, latency: {}", latency)),
                  "{kind: data_parallel, sync: parameter_server, placement: colocated, servers: 2, "
                  "local_aggregation: host, pull: at_first_use}");
  };
  // The latency counts once each way, not once for each of the messages.
  CHECK(step(8, "40ms") - step(8, "20us") < 2.5 * 40e-3);
}

TEST_CASE("what is pulled into devices' memory passes one thread of the node") {
  const auto step = [](const char* more) {
    return step_s(lab::custom_model(4, 2'500'000), cluster(2, 2, "bandwidth: 40GB/s, latency: 20us"),
                  fmt::format("{{kind: data_parallel, sync: parameter_server, overlap: false, "
                              "local_aggregation: host, pull: after_all{}}}",
                              more));
  };
  // Four tensors of a quarter of `bytes`; the last is handed out when all have passed, the others before.
  CHECK(step(", unpack: 0.1GB/s") - step("") == doctest::Approx(bytes / 0.1e9).epsilon(0.03));
}

TEST_CASE("pulled at first use: a step is the pulls, the compute, the pushes and the sums") {
  const lab::Experiment experiment(
      one_layer, cluster(3, 1, "bandwidth: 1GB/s, latency: 20us", ", host: {reduce_bandwidth: 2GB/s}"),
      "{kind: data_parallel, sync: parameter_server, pull: at_first_use}", 4);
  CHECK(experiment.run().step_time_s == approx(compute_s + 2 * (20e-6 + 3 * bytes / 1e9) + 3 * bytes / 2e9));
  // Of several layers, the last ones' parameters arrive while the first compute.
  const std::string deep = lab::custom_model(8, 1'000'000);
  const std::string machine = cluster(2, 1, "bandwidth: 10GB/s, latency: 20us");
  CHECK(step_s(deep, machine, "{kind: data_parallel, sync: parameter_server, pull: at_first_use}") <
        step_s(deep, machine, "{kind: data_parallel, sync: parameter_server, overlap: false}"));
}

TEST_CASE("what a collective takes from computing is its share of the processors while both are under way") {
  const std::string deep = lab::custom_model(6, 4'000'000);
  const std::string fabric = "bandwidth: 25Gbps, latency: 20us, protocol: rdma";
  const std::string ring = "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 8MB}";
  const lab::Experiment taken(deep, cluster(4, 1, fabric, "", ", sms: 35"), ring, 4);
  const lab::Experiment free(deep, cluster(4, 1, fabric), ring, 4);
  const ReplayResult slower = taken.run(), faster = free.run();
  const double share = taken.machine().processors_taken(taken.machine().device_types[0]);
  REQUIRE(share == approx(0.2));
  const Timeline& timeline = slower.timelines[0];
  const std::vector<Task>& program = taken.plan().roles[timeline.role].program;
  double both_s = 0;
  for (TaskId c = 0; c < program.size(); ++c)
    for (TaskId t = 0; t < program.size(); ++t)
      if (program[c].kind == Task::Kind::compute && program[t].kind == Task::Kind::collective)
        both_s += std::max(0.0, std::min(timeline.tasks[c].end_s, timeline.tasks[t].end_s) -
                                    std::max(timeline.tasks[c].start_s, timeline.tasks[t].start_s));
  CHECK(both_s > 0);
  CHECK(slower.endpoints[0].compute_s - faster.endpoints[0].compute_s == approx(share * both_s));
}

TEST_CASE("a transport never beats ideal, more streams never slow one down, folded = unfolded") {
  const std::string model = lab::custom_model(4, 700'000);
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto pick = [&](std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(dice);
    };
    const std::string strategy = transport_strategies[seed % transport_strategies.size()] +
                                 ", transport: " + library_names()[pick(library_names().size())] + "}";
    CAPTURE(strategy);
    const int nodes = static_cast<int>(pick(2)) + 2, devices = static_cast<int>(pick(2)) * 2 + 2;
    const std::string wire = fmt::format("bandwidth: {}Gbps, latency: 20us, ", 1 + pick(100));
    const auto on = [&](const std::string& protocol) {
      return cluster(nodes, devices, wire + "protocol: " + protocol,
                     seed % 3 == 0 ? ", peer_to_peer: false" : "", ", sms: 16");
    };
    const double ideal_s = step_s(model, on("ideal"), strategy);
    for (const char* protocol : {"tcp", "rdma"}) {
      CAPTURE(protocol);
      const double folded_s = step_s(model, on(protocol), strategy);
      CHECK(folded_s >= ideal_s * (1 - 1e-9));
      CHECK(folded_s == approx(step_s(model, on(protocol), strategy, false)).epsilon(1e-9));
      double before_s = folded_s;
      for (const int streams : {1, 2, 5, 16}) {
        const double now_s = step_s(model, on(fmt::format("{}, streams: {}", protocol, streams)), strategy);
        if (streams > 1) CHECK(now_s <= before_s * (1 + 1e-9));
        before_s = now_s;
      }
    }
  }
}
