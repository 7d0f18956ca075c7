// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

const std::string broken_box = "servers: {box: {devices: [{device: ideal}]}}\n";
const std::string two =
    "servers: {two: {devices: [{device: ideal, count: 2}], interconnect: INTERCONNECT}}\n";

std::string with_interconnect(const std::string& interconnect) {
  std::string text = "server: two\nnodes: 1\n" + two;
  return error_of(text.replace(text.find("INTERCONNECT"), 12, interconnect));
}

std::string with_fabric(const std::string& fabric, int nodes = 3, std::uint32_t dedicated = 0) {
  return error_of(fmt::format("server: box\nnodes: {}\nfabric: {}\n", nodes, fabric) + broken_box, dedicated);
}

}  // namespace

TEST_CASE("unknown names are errors with the nearest known one") {
  CHECK(
      error_of("server: dgx1-v10\nnodes: 2") ==
      "c.yaml:1:9: unknown server 'dgx1-v10' (did you mean 'dgx1-v100'?); `convoy show servers` lists them");
  CHECK(error_of("server: bax\nnodes: 2\n" + broken_box) ==
        "c.yaml:1:9: unknown server 'bax' (did you mean 'box'?)");
  CHECK(error_of("server: box\nservers: {box: {devices: [{device: idael}]}}  # not ideal\n") ==
        "c.yaml:2:36: unknown device 'idael' (did you mean 'ideal'?)");
  CHECK(error_of("server: box\nnods: 2\n" + broken_box) ==
        "c.yaml:2:1: cluster.nods: unknown key (did you mean 'nodes'?); known here: communication, "
        "dedicated, devices, "
        "devices_per_node, fabric, name, nic_spread, nodes, power_limit, server, servers, sources, "
        "speed_variation, "
        "step_jitter, title");
  CHECK(with_fabric("{kind: swich, bandwidth: 1Gbps, latency: 1us}") ==
        "c.yaml:3:16: cluster.fabric.kind: unknown value 'swich' (did you mean 'switch'?); allowed: switch, "
        "shared, ring, "
        "full_mesh, fat_tree, torus, dragonfly, custom, rail, sites, simgrid, astra_sim, infragraph");
  CHECK(with_interconnect("{kind: nvlnk}") ==
        "c.yaml:3:76: cluster.servers.two.interconnect.kind: unknown value 'nvlnk' (did you mean 'nvlink'?); "
        "allowed: none, "
        "pcie, nvlink, nvswitch, custom, nvidia_smi, nccl_xml");
}

TEST_CASE("an unknown catalogue cluster is an error with the nearest name") {
  try {
    read_cluster(parse_yaml("tf-gce-k81", "c.yaml"));
    FAIL("no error");
  } catch (const std::exception& error) {
    CHECK(std::string(error.what()) ==
          "c.yaml:1:1: unknown cluster 'tf-gce-k81' (did you mean 'tf-gce-k80'?); `convoy show clusters` "
          "lists them");
  }
}

TEST_CASE("counts and sizes out of range are errors") {
  CHECK(error_of("server: box\nnodes: 0\n" + broken_box) ==
        "c.yaml:2:8: cluster.nodes: 0 is out of range: between 1 and 2000000 is allowed");
  CHECK(error_of("server: box\nnodes: 2.5\n" + broken_box) ==
        "c.yaml:2:8: cluster.nodes: expected a whole number, found '2.5'");
  CHECK(error_of("nodes: []\n" + broken_box) ==
        "c.yaml:1:8: cluster.nodes: a cluster needs at least one node");
  CHECK(error_of("server: box\nservers: {box: {devices: []}}\n") ==
        "c.yaml:2:26: cluster.servers.box.devices: a server needs at least one device");
  CHECK(error_of("server: box\nservers: {box: {devices: [{device: ideal, count: 0}]}}\n") ==
        "c.yaml:2:50: cluster.servers.box.devices[0].count: 0 is out of range: between 1 and 128 is allowed");
  CHECK(with_fabric("{kind: switch, bandwidth: 0Gbps, latency: 1us}") ==
        "c.yaml:3:35: cluster.fabric.bandwidth: '0Gbps' must be more than zero");
  CHECK(with_fabric("{kind: switch, bandwidth: 1Gbps, latency: 1us, efficiency: 120%}") ==
        "c.yaml:3:68: cluster.fabric.efficiency: must be at most 100%");
  CHECK(error_of("server: box\ndevices_per_node: 2\n" + broken_box) ==
        "c.yaml:2:19: cluster.devices_per_node: 2 are asked for, but server 'box' has 1");
  CHECK(error_of("server: box\nspeed_variation: {spread: 100%}\n" + broken_box) ==
        "c.yaml:2:27: cluster.speed_variation.spread: must be below 100%: a device's speed cannot be zero");
}

TEST_CASE("machines beyond reason are errors before they are built") {
  CHECK(error_of("server: dgx2\nnodes: 200000\n") ==
        "c.yaml:1:1: cluster: 3200000 devices; at most 2000000 are allowed");
  CHECK(error_of("server: dgx1-v100\nnodes: 100000\nfabric: {kind: switch, bandwidth: 1Gbps, latency: 1us, "
                 "nics: 32}\n") ==
        "c.yaml:1:1: cluster: 12200000 links inside servers and to their NICs; at most 10000000 are allowed");
  CHECK(error_of("server: box\nfabric: {kind: switch, bandwidth: 1Gbps, latency: 1us}\n" + broken_box,
                 100001) == "c.yaml:1:1: cluster: 100001 dedicated hosts; at most 100000 are allowed");
}

TEST_CASE("hosts of one name are errors, also where the names meet in their numbers") {
  const auto nodes = [](const std::string& list) {
    return error_of("nodes:\n" + list + "fabric: {kind: switch, bandwidth: 1Gbps, latency: 1us}\n" +
                    broken_box);
  };
  CHECK(
      nodes("  - {name: a, server: box}\n  - {name: a, server: box}\n") ==
      "c.yaml:3:12: cluster.nodes[1].name: two entries of nodes make a host 'a0': give them different names");
  CHECK(nodes("  - {name: a, count: 12, server: box}\n  - {name: a1, server: box}\n") ==
        "c.yaml:3:12: cluster.nodes[1].name: two entries of nodes make a host 'a10': give them different "
        "names");
  CHECK(nodes("  - {name: a, count: 10, server: box}\n  - {name: a1, server: box}\n") == "no error");
  CHECK(nodes("  - {name: ps, server: box}\n") ==
        "c.yaml:2:12: cluster.nodes[0].name: 'ps' is kept for dedicated parameter servers (ps0, ps1, ...)");
  CHECK(nodes("  - {name: a b, server: box}\n") ==
        "c.yaml:2:12: cluster.nodes[0].name: 'a b' is not a name: letters, digits, - and _ are allowed");
}

TEST_CASE("what is missing is named") {
  CHECK(error_of("name: lab\n") ==
        "c.yaml:1:1: cluster: needs `server` with `nodes: N`, or a list of `nodes`, or the name of a "
        "catalogue cluster");
  CHECK(error_of("server: box\nnodes: 2\n" + broken_box) ==
        "c.yaml:1:1: cluster: key 'fabric' is missing, and server 'box' names none of its own, such as "
        "{kind: switch, "
        "bandwidth: 10Gbps, latency: 25us}");
  CHECK(error_of("server: box\nnodes: 1\n" + broken_box, 1) ==
        "c.yaml:1:1: cluster: key 'fabric' is missing: the strategy adds dedicated hosts, and nothing joins "
        "them");
  CHECK(
      error_of("server: two\nservers: {two: {devices: [{device: ideal, count: 2}]}}\n") ==
      "c.yaml:2:16: cluster.servers.two: key 'interconnect' is missing: say how the 2 devices are connected");
  CHECK(with_fabric("{kind: switch, latency: 1us}") ==
        "c.yaml:3:9: cluster.fabric: key 'bandwidth' is missing");
  CHECK(error_of("server: box\nnodes: [{server: box}]\n" + broken_box) ==
        "c.yaml:2:8: cluster.nodes: expected a whole number beside `server` (a list of nodes names each "
        "entry's server itself), found a list");
}

TEST_CASE("a fabric that has no use for a key says so") {
  CHECK(with_fabric("{kind: ring, bandwidth: 1Gbps, latency: 1us, nics: 2}") ==
        "c.yaml:3:54: cluster.fabric.nics: unknown key; known here: bandwidth, efficiency, handshake, kind, "
        "latency, message_overhead, protocol, simple_only, stream_bandwidth, streams, tree_chunk");
  CHECK(
      error_of("nodes: [{server: box, nic_bandwidth: 1Gbps}]\nfabric: {kind: ring, bandwidth: 1Gbps, "
               "latency: 1us}\n" +
               broken_box) ==
      "c.yaml:2:9: cluster.fabric: node 'n' has a `nic_bandwidth`, which this kind of fabric has no use for");
}

TEST_CASE("a fabric too small for its hosts is an error, dedicated ones included") {
  CHECK(with_fabric("{kind: torus, bandwidth: 1Gbps, latency: 1us, dims: [2, 2]}", 5) ==
        "c.yaml:3:9: cluster.fabric: a torus of 2 x 2 has 4 positions, too few for 5 hosts");
  CHECK(with_fabric("{kind: torus, bandwidth: 1Gbps, latency: 1us, dims: [2, 2]}", 4, 1) ==
        "c.yaml:3:9: cluster.fabric: a torus of 2 x 2 has 4 positions, too few for 5 hosts");
  CHECK(
      with_fabric("{kind: dragonfly, bandwidth: 1Gbps, latency: 1us, groups: 2, routers: 2, hosts: 1}", 5) ==
      "c.yaml:3:9: cluster.fabric: a dragonfly of 2 groups x 2 routers x 1 hosts has no room for 5 hosts");
  CHECK(with_fabric("{kind: fat_tree, bandwidth: 1Gbps, latency: 1us, radix: 4}", 9) ==
        "c.yaml:3:9: cluster.fabric: 9 hosts need 5 leaf switches of 2 hosts, but this radix has 4");
  CHECK(with_fabric("{kind: full_mesh, bandwidth: 1Gbps, latency: 1us}", 1025) ==
        "c.yaml:3:9: cluster.fabric: a full mesh of 1025 hosts; at most 1024 are allowed (its cables grow "
        "with their square)");
}

TEST_CASE("a custom fabric's cables of dedicated servers are there for strategies that have some") {
  const std::string cables =
      "{kind: custom, switches: [s], links: [{from: n0, to: s, bandwidth: 1Gbps}, {from: n1, to: s, "
      "bandwidth: "
      "1Gbps}, {from: n2, to: s, bandwidth: 1Gbps}";
  CHECK(with_fabric(cables + ", {from: ps0, to: s, bandwidth: 1Gbps}]}") == "no error");
  for (const std::string name : {"ps", "psx", "s0"}) {
    const std::string error =
        with_fabric(fmt::format("{}, {{from: {}, to: s, bandwidth: 1Gbps}}]}}", cables, name));
    CHECK(error.find(fmt::format("there is no '{}'", name)) != std::string::npos);
  }
  CHECK(with_fabric(cables + "]}", 3, 1)
            .ends_with(
                "no route from 'n0' to 'ps0'; dedicated parameter servers ps0, ps1, ... need cables too"));
  CHECK(with_fabric(cables + ", {from: ps0, to: s, bandwidth: 1Gbps}]}", 3, 1) == "no error");
}

TEST_CASE("a custom fabric without a way, or with unknown or double places, is an error") {
  CHECK(with_fabric("{kind: custom, links: [{from: n0, to: n1, bandwidth: 1Gbps}, {from: n0, to: n2, "
                    "bandwidth: 1Gbps}]}") == "c.yaml:3:9: cluster.fabric: no route from 'n1' to 'n2'");
  CHECK(with_fabric("{kind: custom, switches: [s0], links: [{from: n0, to: s00, bandwidth: 1Gbps}]}") ==
        "c.yaml:3:63: cluster.fabric.links[0].to: there is no 's00' (did you mean 's0'?); there are: n0, n1, "
        "n2, s0");
  CHECK(with_fabric("{kind: custom, links: [{from: n0, to: n0, bandwidth: 1Gbps}]}") ==
        "c.yaml:3:47: cluster.fabric.links[0].to: a cable from 'n0' to itself");
  CHECK(
      with_fabric("{kind: custom, links: [{from: n0, to: n1, bandwidth: 1Gbps}, {from: n0, to: n1, "
                  "bandwidth: 1Gbps}]}") ==
      "c.yaml:3:70: cluster.fabric.links[1].name: there is a cable 'n0-n1' already; give this one a `name`");
  CHECK(with_fabric("{kind: custom, switches: [s, s], links: []}") ==
        "c.yaml:3:38: cluster.fabric.switches[1]: 's' is listed twice");
}

TEST_CASE("rules of cables that cannot be written out are errors at their place") {
  const auto with_link = [](const std::string& link) {
    const std::string error = with_fabric("{kind: custom, links: [{bandwidth: 1Gbps, " + link + "}]}");
    return error.substr(error.find("links"));
  };
  CHECK(with_link("from: n$(i), to: n$(k), for: {i: 2}") ==
        "links[0].to: 'k' uses 'k', which nothing defines here; known: hosts, i");
  CHECK(with_link("from: n$(i), to: n$(i + 1, for: {i: 2}") == "links[0].to: '$(i + 1' lacks a ')'");
  CHECK(with_link("from: n$(i), to: n$(i + ), for: {i: 2}").starts_with("links[0].to: 'i + ' "));
  CHECK(
      with_link("from: n$(i), to: n$((i + 1) / 2), for: {i: 2}").starts_with("links[0].to: '(i + 1) / 2' "));
  CHECK(with_link("from: n$(i), to: n$(i), for: {i: 2}") == "links[0].to: a cable from 'n0' to itself");
  CHECK(with_link("from: n$(i), to: n2, for: {i: 2}, name: x") ==
        "links[0].name: there is a cable 'x' already; give this one a `name`");
  CHECK(with_link("from: n0, to: n1, for: {i: 2000, j: 2000}, when: 0 > 1") ==
        "links[0].for: more than 1000000 repetitions");
  CHECK(with_link("from: n0, to: n1, for: {i: 1000000000000, j: 0}") ==
        "links[0].for: more than 1000000 repetitions");
  CHECK(with_link("from: n0, to: n1, for: [2]").starts_with("links[0].for: expected "));
  CHECK(with_fabric("{kind: custom, switches: [{name: s, for: {i: 2}}], links: []}")
            .ends_with("cluster.fabric.switches[0]: 's' is listed twice"));
  CHECK(with_fabric("{kind: custom, switches: [{nam: s}], links: []}").find("did you mean 'name'?") !=
        std::string::npos);
}

TEST_CASE("an interior that leaves a device out is an error") {
  CHECK(with_interconnect("{kind: pcie, bandwidth: 1GB/s, switches: [[0]]}") ==
        "c.yaml:3:110: cluster.servers.two.interconnect.switches: 1 is not listed; each of the 2 devices "
        "must be, once");
  CHECK(with_interconnect("{kind: pcie, bandwidth: 1GB/s, switches: [[0, 1], [1]]}") ==
        "c.yaml:3:120: cluster.servers.two.interconnect.switches[1][0]: 1 is listed twice");
  CHECK(with_interconnect("{kind: pcie, bandwidth: 1GB/s, switches: [[0, 2]]}") ==
        "c.yaml:3:115: cluster.servers.two.interconnect.switches[0][1]: 2 is out of range: between 0 and 1 "
        "is allowed");
  CHECK(with_interconnect("{kind: nvlink, bandwidth: 1GB/s, pairs: []}") ==
        "c.yaml:3:69: cluster.servers.two.interconnect: key 'pcie' is missing: some pairs of devices have no "
        "NVLink, and PCIe "
        "is their way");
  CHECK(with_interconnect("{kind: nvlink, bandwidth: 1GB/s, matrix: [[0, 1], [2, 0]]}") ==
        "c.yaml:3:110: cluster.servers.two.interconnect.matrix: is not symmetric: 1 links from 0 to 1, but 2 "
        "back");
  CHECK(with_interconnect("{kind: custom, links: [{from: gpu0, to: host, bandwidth: 1GB/s}]}") ==
        "c.yaml:3:91: cluster.servers.two.interconnect.links: no route from 'gpu0' to 'gpu1'");
}
