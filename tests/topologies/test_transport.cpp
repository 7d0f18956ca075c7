// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "tests/support/approx.h"
#include "tests/topologies/machines.h"
#include "topologies/cluster.h"
#include "topologies/transport.h"

using namespace convoy;

namespace {

/// Two hosts of two devices each on a fabric with these keys more, through the transport.
Machine two_hosts(const std::string& fabric, const Transport& transport, const std::string& server = "") {
  const std::string yaml =
      "nodes: [{name: n, count: 2, server: box}]\n"
      "fabric: {kind: switch, bandwidth: 80Gbps, latency: 10us" +
      fabric +
      "}\n"
      "servers: {box: {devices: [{device: exact, count: 2}], interconnect: {kind: pcie, bandwidth: 12GB/s}" +
      server +
      "}}\n"
      "devices: {exact: {peak: {fp32: 1TFLOPS}, memory: 16GiB, memory_bandwidth: 1TB/s, efficiency: 1.0, "
      "sms: 40}}";
  return build_machine(read_cluster(parse_yaml(yaml, "cluster")), 0, transport);
}

std::vector<std::string> names_of(const Machine& machine, EndpointId from, EndpointId to) {
  Route route;
  machine.router->route(from, to, route);
  std::vector<std::string> names;
  for (const LinkId link : route.links) names.push_back(machine.links[link].name);
  return names;
}

Route route_of(const Machine& machine, EndpointId from, EndpointId to) {
  Route route;
  machine.router->route(from, to, route);
  return route;
}

}  // namespace

TEST_CASE("every library has numbers over every protocol but the ideal one, and each number its source") {
  CHECK(transport_names().size() == library_names().size() * (protocol_names.size() - 1));
  for (const std::string& name : transport_names()) {
    CAPTURE(name);
    const YamlNode file = load_yaml(data_path("topologies/catalog/transports") + "/" + name + ".yaml");
    const Transport transport = load_transport(name, {});
    CHECK(!transport.ideal());
    CHECK(!transport.title.empty());
    for (const auto& [key, value] : file.entries) {
      if (key == "title" || key == "sources" || value.scalar == "true" || value.scalar == "false") continue;
      CAPTURE(key);
      CHECK(file.find("sources")->find(key) != nullptr);
    }
    for (const auto& [key, source] : transport.sources) {
      CAPTURE(key);
      CHECK(file.find(key) != nullptr);
      CHECK(source.text.size() > 5);
    }
  }
}

TEST_CASE("a call takes time for its message's bytes and, where a library's does, for their square") {
  Transport transport;
  transport.call_s = 1e-4;
  CHECK(transport.call_s_of(1e8) == approx(1e-4));
  transport.serialise_Bps = 1e9;
  CHECK(transport.call_s_of(1e8) == approx(1e-4 + 0.2));
  transport.serialise_halved_bytes = 1e8;
  CHECK(transport.call_s_of(1e8) == approx(1e-4 + 0.4));
  CHECK(transport.call_s_of(3e8) == approx(1e-4 + 0.6 * 4));
  // gRPC's takes slices off the front of a message; what RDMA writes has none.
  CHECK(std::isfinite(load_transport("grpc-tcp", {}).serialise_halved_bytes));
  CHECK(std::isinf(load_transport("grpc-rdma", {}).serialise_halved_bytes));
}

TEST_CASE("an ideal fabric has no transport, and a name that there is none of is told with those there are") {
  CHECK(transport_over("nccl", Protocol::ideal).ideal());
  CHECK(transport_over("zmq", Protocol::rdma).name == "zmq-rdma");
  CHECK_THROWS_WITH_AS(
      load_transport("ncl-tcp", {"f", 1, 2}),
      "f:1:2: unknown transport 'ncl-tcp' (did you mean 'nccl-tcp'?); there are gloo-rdma, "
      "gloo-tcp, grpc-rdma, grpc-tcp, mpi-rdma, mpi-tcp, nccl-rdma, nccl-tcp, zmq-rdma, zmq-tcp",
      InputError);
}

TEST_CASE("what a fabric speaks is told by the cluster's, or its servers'") {
  const auto protocol = [](const std::string& yaml) {
    return read_cluster(parse_yaml(yaml, "c")).protocol().protocol;
  };
  CHECK(protocol("server: aws-p3.16xlarge\nnodes: 2") == Protocol::tcp);
  CHECK(protocol("server: dgx-a100\nnodes: 2") == Protocol::rdma);
  CHECK(protocol("server: dgx-a100\nnodes: 2\nfabric: {kind: switch, bandwidth: 1Gbps, latency: 1us}") ==
        Protocol::tcp);
  CHECK(protocol("nodes: [{name: a, server: dgx-a100}, {name: b, server: aws-p3.2xlarge}]") == Protocol::tcp);
  CHECK_THROWS_WITH_AS(
      protocol("server: dgx2\nfabric: {kind: switch, bandwidth: 1Gbps, latency: 1us, streams: 2}"),
      doctest::Contains("streams: goes with protocol: tcp or rdma only; leave it out"), InputError);
  CHECK_THROWS_WITH_AS(
      protocol("server: dgx2\nfabric: {kind: switch, bandwidth: 1Gbps, latency: 1us, protocol: udp}"),
      doctest::Contains("ideal, tcp, rdma"), InputError);
}

TEST_CASE("messages between hosts take a connection and the hosts' copies, those inside a host do not") {
  Transport transport = load_transport("nccl-tcp", {});
  const Machine machine = two_hosts(", protocol: tcp", transport);
  CHECK(names_of(machine, 0, 2) == std::vector<std::string>{"n0.gpu0.pcie.up", "n0.copies", "n0.nic.up",
                                                            "n1.nic.down", "n1.copies", "n1.gpu0.pcie.down"});
  const Route between = route_of(machine, 0, 2);
  CHECK(between.connection_Bps == approx(transport.stream_bandwidth_Bps * transport.streams));
  CHECK(between.latency_s == approx(10e-6 + transport.message_s));
  CHECK(route_of(machine, 1, 2).connection != between.connection);  // NCCL: a connection a pair of devices
  CHECK(std::isinf(route_of(machine, 0, 1).connection_Bps));
  CHECK(names_of(machine, 0, 1).size() == 2);
  CHECK(machine.collective_overhead_s == transport.start_s);
  CHECK(route_of(two_hosts(", protocol: tcp, streams: 8", transport), 0, 2).connection_Bps ==
        approx(transport.stream_bandwidth_Bps * 8));
  CHECK(names_of(two_hosts("", ideal_transport()), 0, 2) ==
        std::vector<std::string>{"n0.gpu0.pcie.up", "n0.nic.up", "n1.nic.down", "n1.gpu0.pcie.down"});
  const Machine grpc = two_hosts(", protocol: tcp", load_transport("grpc-tcp", {}));
  CHECK(route_of(grpc, 1, 2).connection == route_of(grpc, 0, 3).connection);  // one process a host
  // Connections of hosts are told from those of devices, whose numbers begin at 0 as well.
  Transport both = load_transport("grpc-tcp", {});
  both.through_host_memory = both.inside_hosts = true;
  const Machine mixed = two_hosts(", protocol: tcp", both);
  CHECK(std::isfinite(route_of(mixed, 0, 1).connection_Bps));
  CHECK(route_of(mixed, 0, 1).connection != route_of(mixed, 0, 2).connection);
  const Transport gloo = load_transport("gloo-tcp", {});
  CHECK(two_hosts(", protocol: tcp", gloo).collective_overhead_s ==
        approx(gloo.start_s + 10e-6 + gloo.message_s));
}

TEST_CASE("without peer-to-peer messages between devices go through the host's memory, NVLink needs none") {
  const Machine machine =
      two_hosts("", ideal_transport(), ", peer_to_peer: false, host: {staging_bandwidth: 20GB/s}");
  CHECK(names_of(machine, 0, 1) == std::vector<std::string>{"n0.gpu0.pcie.up", "n0.gpu0.staging",
                                                            "n0.staging", "n0.gpu1.staging",
                                                            "n0.gpu1.pcie.down"});
  for (const Link& link : machine.links) {
    if (link.name == "n0.staging") CHECK(link.bandwidth_Bps == 20e9);
    if (link.name == "n0.gpu0.staging") CHECK(link.bandwidth_Bps == approx(0.8 * 12e9));
  }
  CHECK(names_of(machine, 0, 2).size() == 4);
  const Machine bridged = machine_of("server: workstation-4-rtx-2080-ti-nvlink");
  CHECK(names_of(bridged, 0, 1).size() == 1);
  CHECK(names_of(bridged, 1, 2).size() == 5);
  CHECK(names_of(machine_of("server: workstation-4-quadro-rtx-8000"), 0, 1).size() == 2);
  // Through host memory libraries that copy there go too, over devices that could do without.
  CHECK(names_of(two_hosts(", protocol: tcp", load_transport("gloo-tcp", {})), 0, 1).size() == 5);
  CHECK(names_of(two_hosts(", protocol: tcp", load_transport("zmq-tcp", {})), 0, 1).size() == 2);
}

TEST_CASE(
    "a collective takes a multiprocessor a channel, at least seven, and at most what Proteus measured") {
  const Transport transport = load_transport("nccl-rdma", {});
  Machine machine = two_hosts(", protocol: rdma", transport);  // of devices with 40 multiprocessors
  const auto taken_of = [&](std::uint32_t channels) {
    machine.transport.channels = channels;
    return machine.processors_taken(machine.device_types[0]);
  };
  CHECK(taken_of(8) == approx(8.0 / 40));
  CHECK(taken_of(2) == approx(7.0 / 40));
  CHECK(taken_of(100) == 1 - 1 / 1.3);
  CHECK(taken_of(0) == 0);
  machine.hosts.resize(1);  // inside one host as across several
  CHECK(taken_of(2) == approx(7.0 / 40));
  machine.device_types[0].sms = 0;
  CHECK(taken_of(2) == 0);
}
