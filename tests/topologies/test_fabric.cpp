// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/approx.h"
#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

constexpr double us = 1e-6;

/// `count` servers of one device each on `fabric`.
std::string hosts_on(int count, const std::string& fabric) {
  return fmt::format(
      "nodes: [{{name: n, count: {}, server: box}}]\nfabric: {}\n"
      "servers: {{box: {{devices: [{{device: ideal}}]}}}}\n",
      count, fabric);
}

const Link& link(const Machine& machine, const std::string& name) {
  for (const Link& candidate : machine.links)
    if (candidate.name == name) return candidate;
  throw std::out_of_range("no link " + name);
}

}  // namespace

TEST_CASE("all hosts and both directions of a shared medium have one link") {
  const Machine machine = machine_of(hosts_on(3, "{kind: shared, bandwidth: 54Mbps, latency: 1ms}"));
  REQUIRE(machine.links.size() == 1);
  CHECK(machine.port_count == 1);
  CHECK(port_name(machine.links[0]) == "medium");
  CHECK(machine.links[0].bandwidth_Bps == approx(6.75e6));
  CHECK(way(machine, "n0", "n2") == "medium");
  CHECK(way(machine, "n2", "n0") == "medium");
  CHECK(latency_s(machine, "n1", "n0") == 1 * 1e-3);
}

TEST_CASE("messages go the shorter way round a ring, and onward in a tie") {
  const Machine machine = machine_of(hosts_on(6, "{kind: ring, bandwidth: 10Gbps, latency: 3us}"));
  CHECK(machine.links.size() == 12);
  CHECK(way(machine, "n0", "n2") == "n0-n1.up n1-n2.up");
  CHECK(way(machine, "n2", "n0") == "n1-n2.down n0-n1.down");
  CHECK(way(machine, "n0", "n5") == "n5-n0.down");
  CHECK(way(machine, "n5", "n1") == "n5-n0.up n0-n1.up");
  CHECK(way(machine, "n1", "n4") == "n1-n2.up n2-n3.up n3-n4.up");
  CHECK(way(machine, "n4", "n1") == "n4-n5.up n5-n0.up n0-n1.up");
  CHECK(latency_s(machine, "n1", "n4") == approx(9 * us).epsilon(1e-15));
}

TEST_CASE("a ring of two hosts is one duplex cable") {
  const Machine machine = machine_of(hosts_on(2, "{kind: ring, bandwidth: 10Gbps, latency: 3us}"));
  CHECK(machine.port_count == 1);
  CHECK(way(machine, "n0", "n1") == "n0-n1.up");
  CHECK(way(machine, "n1", "n0") == "n0-n1.down");
}

TEST_CASE("every two hosts of a full mesh have a cable of their own") {
  const Machine machine = machine_of(hosts_on(5, "{kind: full_mesh, bandwidth: 10Gbps, latency: 3us}"));
  CHECK(machine.port_count == 5 * 4 / 2);
  for (int a = 0; a < 5; ++a)
    for (int b = a + 1; b < 5; ++b) {
      CHECK(way(machine, fmt::format("n{}", a), fmt::format("n{}", b)) == fmt::format("n{}-n{}.up", a, b));
      CHECK(way(machine, fmt::format("n{}", b), fmt::format("n{}", a)) == fmt::format("n{}-n{}.down", a, b));
    }
}

TEST_CASE("a message's overhead is counted once however many cables it takes") {
  for (const char* kind : {"ring", "full_mesh", "torus, dims: [4]"}) {
    CAPTURE(kind);
    const Machine machine = machine_of(hosts_on(
        4, fmt::format("{{kind: {}, bandwidth: 8Gbps, latency: 3us, message_overhead: 10us}}", kind)));
    const int cables = std::string(kind) == "full_mesh" ? 1 : 2;
    CHECK(latency_s(machine, "n0", "n2") == approx((10 + 3 * cables) * us).epsilon(1e-12));
    // The stack is as fast as all cables of the host together: two of 1 GB/s, three in the mesh of four
    // hosts.
    CHECK(link(machine, "n0.stack.up").bandwidth_Bps == approx(cables == 1 ? 3e9 : 2e9));
  }
  for (const char* kind : {"switch", "shared"}) {
    CAPTURE(kind);
    const Machine machine = machine_of(hosts_on(
        4, fmt::format("{{kind: {}, bandwidth: 8Gbps, latency: 3us, message_overhead: 10us}}", kind)));
    CHECK(latency_s(machine, "n0", "n2") == approx(13 * us).epsilon(1e-12));
  }
}

TEST_CASE("efficiency takes its share of the bandwidth and leaves the latency") {
  const Machine machine =
      machine_of(hosts_on(2, "{kind: switch, bandwidth: 10Gbps, latency: 25us, efficiency: 92%}"));
  CHECK(machine.links[0].bandwidth_Bps == approx(1.15e9));
  CHECK(latency_s(machine, "n0", "n1") == 25 * us);
}

TEST_CASE("a two-level fat tree goes over the spine of the destination's number") {
  // Two hosts a leaf: leaf 0 has n0 n1, leaf 1 has n2 n3, leaf 2 has n4. Two spines: destination number
  // mod 2.
  const Machine machine = machine_of(
      hosts_on(5, "{kind: fat_tree, bandwidth: 10Gbps, latency: 2us, hosts_per_leaf: 2, hop_latency: 1us}"));
  CHECK(machine.port_count == 5 + 3 * 2);
  CHECK(way(machine, "n0", "n1") == "n0.nic.up n1.nic.down");
  CHECK(way(machine, "n0", "n3") == "n0.nic.up leaf0.spine1.up leaf1.spine1.down n3.nic.down");
  CHECK(way(machine, "n3", "n0") == "n3.nic.up leaf1.spine0.up leaf0.spine0.down n0.nic.down");
  CHECK(way(machine, "n1", "n4") == "n1.nic.up leaf0.spine0.up leaf2.spine0.down n4.nic.down");
  CHECK(latency_s(machine, "n0", "n1") == 2 * us);
  CHECK(latency_s(machine, "n0", "n3") == approx(4 * us).epsilon(1e-12));
  CHECK(link(machine, "leaf0.spine1.up").bandwidth_Bps == 1.25e9);
}

TEST_CASE("oversubscription narrows the cables above a leaf by exactly that factor") {
  // 8 hosts of 1.25 GB/s below, 4 spines: 10 GB/s / (4 x 2) = 1.25 GB/s a cable, and half of the leaf's 10
  // GB/s in all.
  const Machine machine = machine_of(hosts_on(16,
                                              "{kind: fat_tree, bandwidth: 10Gbps, latency: 2us, "
                                              "hosts_per_leaf: 8, spines: 4, oversubscription: 2}"));
  CHECK(link(machine, "leaf1.spine3.down").bandwidth_Bps == approx(1.25e9));
  CHECK(machine.port_count == 16 + 2 * 4);
}

TEST_CASE("a three-level fat tree takes the core of the destination's next digit") {
  // Radix 4: 2 hosts a leaf, 2 leaves a pod (4 hosts), 2 spines a pod, 2 cores a spine. Destination 7 = 1 + 2
  // * 3: spine 7 mod 2 = 1, core 3 mod 2 = 1. Destination 4 = 0 + 2 * 2: spine 0, core 2 mod 2 = 0.
  const Machine machine = machine_of(hosts_on(
      8, "{kind: fat_tree, bandwidth: 10Gbps, latency: 2us, radix: 4, levels: 3, hop_latency: 1us}"));
  CHECK(machine.port_count == 8 + 4 * 2 + 2 * 2 * 2);
  CHECK(way(machine, "n0", "n7") ==
        "n0.nic.up leaf0.spine1.up pod0.spine1.core1.up pod1.spine1.core1.down "
        "leaf3.spine1.down n7.nic.down");
  CHECK(way(machine, "n3", "n4") ==
        "n3.nic.up leaf1.spine0.up pod0.spine0.core0.up pod1.spine0.core0.down "
        "leaf2.spine0.down n4.nic.down");
  CHECK(way(machine, "n0", "n2") == "n0.nic.up leaf0.spine0.up leaf1.spine0.down n2.nic.down");
  CHECK(latency_s(machine, "n0", "n7") == approx(6 * us).epsilon(1e-12));
  CHECK(link(machine, "pod0.spine1.core0.up").bandwidth_Bps == 1.25e9);
}

TEST_CASE("a torus corrects the first coordinate first and goes the shorter way round") {
  // 4 x 3, first dimension fastest: n5 is (1, 1), n11 is (3, 2).
  const Machine machine =
      machine_of(hosts_on(12, "{kind: torus, bandwidth: 10Gbps, latency: 1us, dims: [4, 3]}"));
  CHECK(machine.port_count == 2 * 12);
  CHECK(way(machine, "n0", "n5") == "torus0-0.d0.up torus1-0.d1.up");
  CHECK(way(machine, "n5", "n0") == "torus0-1.d0.down torus0-0.d1.down");
  CHECK(way(machine, "n0", "n11") == "torus3-0.d0.down torus3-2.d1.down");
  CHECK(way(machine, "n1", "n3") == "torus1-0.d0.up torus2-0.d0.up");
  CHECK(latency_s(machine, "n0", "n5") == approx(2 * us).epsilon(1e-12));
}

TEST_CASE("a torus dimension of two positions has one cable") {
  const Machine machine =
      machine_of(hosts_on(4, "{kind: torus, bandwidth: 10Gbps, latency: 1us, dims: [2, 2]}"));
  CHECK(machine.port_count == 4);
  CHECK(way(machine, "n0", "n3") == "torus0-0.d0.up torus1-0.d1.up");
  CHECK(way(machine, "n3", "n0") == "torus0-1.d0.down torus0-0.d1.down");
}

TEST_CASE("a host with a NIC of its own on a torus sends and gets through it, and passes on beside it") {
  const Machine machine = machine_of(R"(
nodes: [{name: a, count: 2, server: box}, {name: slow, server: box, nic_bandwidth: 1Gbps}, {name: z, count: 2, server: box}]
fabric: {kind: torus, bandwidth: 10Gbps, latency: 1us, dims: [5]}
servers:
  box: {devices: [{device: ideal, count: 1}], interconnect: {kind: none}}
)");
  CHECK(way(machine, "a0", "slow0") == "torus0.d0.up torus1.d0.up slow0.nic.down");
  CHECK(way(machine, "slow0", "z0") == "slow0.nic.up torus2.d0.up");
  CHECK(way(machine, "a1", "z0") == "torus1.d0.up torus2.d0.up");
  CHECK(latency_s(machine, "a0", "slow0") == approx(2 * us).epsilon(1e-12));
  for (const Link& link : machine.links)
    CHECK(link.bandwidth_Bps == approx(link.name.starts_with("slow") ? 0.125e9 : 1.25e9).epsilon(1e-12));
}

TEST_CASE("a dragonfly needs at most one local, one global and one local cable") {
  // 3 groups of 2 routers with 2 hosts: n0 n1 | n2 n3 in group 0, n4 n5 | n6 n7 in group 1, n8 ... in
  // group 2. The cable of group 0 to group 1 is at router 0 x 2 / 2 = 0, to group 2 at router 1; group 1 has
  // group 2 at its router 0 and group 0 at router 1; group 2 has group 0 at router 0 and group 1 at router 1.
  const Machine machine = machine_of(hosts_on(12,
                                              "{kind: dragonfly, bandwidth: 10Gbps, latency: 2us, groups: 3, "
                                              "routers: 2, hosts: 2, local_latency: 1us, "
                                              "global_latency: 5us, global_bandwidth: 20Gbps}"));
  CHECK(machine.port_count == 12 + 3 * 1 + 3);
  CHECK(way(machine, "n0", "n1") == "n0.nic.up n1.nic.down");
  CHECK(way(machine, "n0", "n3") == "n0.nic.up group0.router0-1.up n3.nic.down");
  CHECK(way(machine, "n2", "n4") ==
        "n2.nic.up group0.router0-1.down group0-group1.up group1.router0-1.down n4.nic.down");
  CHECK(way(machine, "n4", "n2") ==
        "n4.nic.up group1.router0-1.up group0-group1.down group0.router0-1.up n2.nic.down");
  CHECK(way(machine, "n0", "n6") == "n0.nic.up group0-group1.up n6.nic.down");
  CHECK(way(machine, "n2", "n8") == "n2.nic.up group0-group2.up n8.nic.down");
  CHECK(latency_s(machine, "n2", "n4") == approx(9 * us).epsilon(1e-12));
  CHECK(link(machine, "group1-group2.down").bandwidth_Bps == 2.5e9);
}

TEST_CASE("a custom fabric takes the way of least latency through switches, not through hosts") {
  const std::string fabric = R"({kind: custom, switches: [s0, s1], links: [
    {from: n0, to: s0, bandwidth: 10Gbps, latency: 1us}, {from: n1, to: s0, bandwidth: 10Gbps, latency: 1us},
    {from: n2, to: s1, bandwidth: 1Gbps, latency: 1us}, {from: s0, to: s1, bandwidth: 40Gbps, latency: 5us},
    {from: s1, to: s0, bandwidth: 1Gbps, latency: 2us, name: short}, {from: n1, to: n2, bandwidth: 1Gbps}]FORWARD})";
  const auto with = [&](const std::string& forward) {
    std::string text = fabric;
    return text.replace(text.find("FORWARD"), 7, forward);
  };
  const Machine machine = machine_of(hosts_on(3, with("")));
  CHECK(machine.port_count == 6);
  CHECK(way(machine, "n0", "n2") == "n0-s0.up short.down n2-s1.down");
  CHECK(way(machine, "n2", "n0") == "n2-s1.up short.up n0-s0.down");
  CHECK(way(machine, "n1", "n2") == "n1-n2.up");
  CHECK(latency_s(machine, "n0", "n2") == approx(4 * us).epsilon(1e-12));
  // 1 us + 1 us + 0 us over n1 is shorter than 4 us, once hosts pass on.
  const Machine forwarding = machine_of(hosts_on(3, with(", hosts_forward: true")));
  CHECK(way(forwarding, "n0", "n2") == "n0-s0.up n1-s0.down n1-n2.up");
}

TEST_CASE("of equally long ways a custom fabric takes the one listed first") {
  const Machine machine = machine_of(hosts_on(2, R"({kind: custom, switches: [a, b], links: [
    {from: n0, to: b, bandwidth: 1Gbps, latency: 1us}, {from: n0, to: a, bandwidth: 1Gbps, latency: 1us},
    {from: n1, to: a, bandwidth: 1Gbps, latency: 1us}, {from: n1, to: b, bandwidth: 1Gbps, latency: 1us}]})"));
  CHECK(way(machine, "n0", "n1") == "n0-a.up n1-a.down");
}

TEST_CASE("a custom fabric by rule is the one whose cables are listed") {
  const Machine listed =
      machine_of(hosts_on(6, R"({kind: custom, switches: [leaf0, leaf1, leaf2, spine0, spine1], links: [
    {from: n0, to: leaf0, bandwidth: 10Gbps, latency: 1us}, {from: n1, to: leaf0, bandwidth: 10Gbps, latency: 1us},
    {from: n2, to: leaf1, bandwidth: 10Gbps, latency: 1us}, {from: n3, to: leaf1, bandwidth: 10Gbps, latency: 1us},
    {from: n4, to: leaf2, bandwidth: 10Gbps, latency: 1us}, {from: n5, to: leaf2, bandwidth: 10Gbps, latency: 1us},
    {from: leaf0, to: spine0, bandwidth: 40Gbps, latency: 2us, name: up0.0},
    {from: leaf0, to: spine1, bandwidth: 40Gbps, latency: 2us, name: up0.1},
    {from: leaf1, to: spine0, bandwidth: 40Gbps, latency: 2us, name: up1.0},
    {from: leaf1, to: spine1, bandwidth: 40Gbps, latency: 2us, name: up1.1},
    {from: leaf2, to: spine0, bandwidth: 40Gbps, latency: 2us, name: up2.0},
    {from: leaf2, to: spine1, bandwidth: 40Gbps, latency: 2us, name: up2.1}]})"));
  const Machine ruled = machine_of(hosts_on(6, R"({kind: custom,
    switches: [{name: leaf$(i), for: {i: (hosts + 1) // 2}}, {name: spine$(i), for: {i: 2}}], links: [
    {from: n$(i), to: leaf$(i // 2), for: {i: hosts}, bandwidth: 10Gbps, latency: 1us},
    {from: leaf$(i), to: spine$(j), name: up$(i).$(j), for: {j: 2, i: (hosts + 1) // 2}, bandwidth: 40Gbps, latency: 2us}]})"));
  CHECK(ruled.links.size() == listed.links.size());
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to) {
      const std::string a = fmt::format("n{}", from), b = fmt::format("n{}", to);
      CHECK(way(ruled, a, b) == way(listed, a, b));
      if (from != to) CHECK(latency_s(ruled, a, b) == latency_s(listed, a, b));
    }
}

TEST_CASE("a torus by rule has the ways' lengths of the torus, and a mesh by rule those of the mesh") {
  // Odd sides: no tie between the two ways round.
  const Machine torus =
      machine_of(hosts_on(15, "{kind: torus, dims: [3, 5], bandwidth: 10Gbps, latency: 3us}"));
  const Machine ruled = machine_of(hosts_on(15, R"({kind: custom, hosts_forward: true, links: [
    {from: n$(x + 3 * y), to: n$((x + 1) % 3 + 3 * y), for: {x: 3, y: 5}, bandwidth: 10Gbps, latency: 3us},
    {from: n$(x + 3 * y), to: n$(x + 3 * ((y + 1) % 5)), for: {x: 3, y: 5}, bandwidth: 10Gbps, latency: 3us}]})"));
  const Machine mesh = machine_of(hosts_on(15, "{kind: full_mesh, bandwidth: 10Gbps, latency: 3us}"));
  const Machine pairs = machine_of(hosts_on(15, R"({kind: custom, links: [
    {from: n$(i), to: n$(j), for: {i: hosts, j: hosts}, when: i < j, bandwidth: 10Gbps, latency: 3us}]})"));
  CHECK(ruled.links.size() == torus.links.size());
  CHECK(pairs.links.size() == mesh.links.size());
  for (int from = 0; from < 15; ++from)
    for (int to = 0; to < 15; ++to) {
      if (from == to) continue;
      const std::string a = fmt::format("n{}", from), b = fmt::format("n{}", to);
      CHECK(latency_s(ruled, a, b) == approx(latency_s(torus, a, b)));
      CHECK(latency_s(pairs, a, b) == approx(latency_s(mesh, a, b)));
    }
}

TEST_CASE("hosts with several NICs spread over them, destination by destination") {
  const Machine machine = machine_of(R"(
nodes: [{name: n, count: 2, server: quad}]
fabric: {kind: switch, bandwidth: 10Gbps, latency: 2us, nics: 2}
servers:
  quad: {devices: [{device: ideal, count: 4}], interconnect: {kind: none}}
)");
  CHECK(machine.port_count == 4);
  CHECK(way(machine, "n0.gpu0", "n1.gpu3") == "n0.nic0.up n1.nic1.down");
  CHECK(way(machine, "n0.gpu2", "n1.gpu1") == "n0.nic1.up n1.nic0.down");
  CHECK(way(machine, "mem:n0", "mem:n1") == "n0.nic0.up n1.nic0.down");
}
