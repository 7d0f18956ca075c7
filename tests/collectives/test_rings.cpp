// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "sim/base/yaml_node.h"
#include "sim/collectives/collectives.h"
#include "sim/collectives/rings.h"
#include "tests/support/approx.h"
#include "topologies/cluster.h"

using namespace convoy;

namespace {

using Rings = std::vector<std::vector<std::uint32_t>>;

Machine catalogue(const std::string& server, int nodes) {
  return build_machine(read_cluster(parse_yaml(fmt::format("{{server: {}, nodes: {}}}", server, nodes), "c")),
                       0);
}

Machine inline_host(int devices, const std::string& interconnect, int hosts = 1,
                    const std::string& nic = "1GB/s") {
  return build_machine(
      read_cluster(parse_yaml(
          fmt::format(
              "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: "
              "{}, latency: 1us}}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], "
              "interconnect: {}}}}}, devices: {{ideal: {{peak: {{fp32: 1TFLOPS}}, memory: 1GiB, "
              "memory_bandwidth: 1GB/s, efficiency: 1.0}}}}}}",
              hosts, nic, devices, interconnect),
          "c")),
      0);
}

std::vector<EndpointId> all_devices(const Machine& machine) {
  std::vector<EndpointId> result(machine.devices.size());
  std::iota(result.begin(), result.end(), 0u);
  return result;
}

std::vector<LinkId> way(const Machine& machine, EndpointId from, EndpointId to) {
  Route route;
  machine.router->route(from, to, route);
  return route.links;
}

/// Every rank once in each ring, all hops over one cable, and no direction of a cable used by more rings than
/// it is times as wide as the host's narrowest cable.
void check_rings_over_cables(const Machine& machine, const Rings& rings) {
  std::map<LinkId, int> uses;
  double link_Bps = 1e300;
  for (const EndpointId a : all_devices(machine))
    for (const EndpointId b : all_devices(machine))
      if (const std::vector<LinkId> links = way(machine, a, b); links.size() == 1)
        link_Bps = std::min(link_Bps, machine.links[links[0]].bandwidth_Bps);
  for (const std::vector<std::uint32_t>& ring : rings) {
    std::vector<std::uint32_t> sorted = ring;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == all_devices(machine));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::vector<LinkId> links = way(machine, ring[i], ring[(i + 1) % ring.size()]);
      REQUIRE(links.size() == 1);
      ++uses[links[0]];
    }
  }
  for (const auto& [link, count] : uses) {
    CAPTURE(machine.links[link].name);
    CHECK(count <= std::lround(machine.links[link].bandwidth_Bps / link_Bps));
  }
}

}  // namespace

TEST_CASE("a DGX-1 has four rings with P100 and six with V100, all over NVLink and within its capacity") {
  const Machine p100 = catalogue("dgx1-p100", 1), v100 = catalogue("dgx1-v100", 1);
  const Rings four = find_rings(all_devices(p100), p100), six = find_rings(all_devices(v100), v100);
  CHECK(four.size() == 4);
  check_rings_over_cables(p100, four);
  CHECK(six.size() == 6);
  check_rings_over_cables(v100, six);
}

TEST_CASE("rings come in both directions") {
  const Machine machine = catalogue("dgx1-v100", 1);
  Rings rings = find_rings(all_devices(machine), machine);
  for (std::size_t i = 0; i + 1 < rings.size(); i += 2) {
    std::reverse(rings[i].begin(), rings[i].end());
    CHECK(rings[i] == rings[i + 1]);
  }
}

TEST_CASE("a full mesh of n devices has n - 1 rings for odd n, n - 2 for even n") {
  // Each device has n - 1 cables, and a cycle takes two of them.
  for (int n = 3; n <= 7; ++n) {
    CAPTURE(n);
    const Machine machine = inline_host(n, "{kind: nvlink, bandwidth: 25GB/s}");
    const Rings rings = find_rings(all_devices(machine), machine);
    CHECK(rings.size() == static_cast<std::size_t>(n % 2 == 1 ? n - 1 : n - 2));
    check_rings_over_cables(machine, rings);
  }
}

TEST_CASE("cables that form no cycle make no ring of cables") {
  const Machine path = inline_host(
      4, "{kind: nvlink, bandwidth: 25GB/s, pairs: [[0, 1], [1, 2], [2, 3]], pcie: {bandwidth: 12GB/s}}");
  CHECK(find_rings(all_devices(path), path) == Rings{{0, 1, 2, 3}});
  // A bond carries as many rings as it is wide: the square 0 1 2 3 of double cables twice, both ways.
  const Machine bonds = inline_host(
      4,
      "{kind: nvlink, bandwidth: 25GB/s, pairs: [[0, 1, 2], [1, 2, 2], [2, 3, 2], [3, 0, 2], [0, 2]], pcie: "
      "{bandwidth: 12GB/s}}");
  const Rings rings = find_rings(all_devices(bonds), bonds);
  CHECK(rings.size() == 4);
  check_rings_over_cables(bonds, rings);
}

TEST_CASE("PCIe, NVSwitch and one place have one ring, in the order of the ranks") {
  for (const std::string interconnect :
       {"{kind: pcie, bandwidth: 12GB/s}", "{kind: nvswitch, bandwidth: 300GB/s}", "{kind: none}"}) {
    CAPTURE(interconnect);
    const Machine machine = inline_host(4, interconnect);
    CHECK(find_rings({0, 1, 2, 3}, machine) == Rings{{0, 1, 2, 3}});
    CHECK(find_rings({3, 1, 0}, machine) == Rings{{0, 1, 2}});
  }
}

TEST_CASE("in_order is one ring whatever the cables") {
  const Machine machine = catalogue("dgx1-v100", 1);
  CHECK(find_rings(all_devices(machine), machine, RingOrder::in_order) == Rings{{0, 1, 2, 3, 4, 5, 6, 7}});
}

TEST_CASE("over several hosts there is a ring for each NIC, along the cables inside each host") {
  const Machine machine = catalogue("dgx1-p100", 3);
  const Rings rings = find_rings(all_devices(machine), machine);
  REQUIRE(rings.size() == 4);
  for (const std::vector<std::uint32_t>& ring : rings) {
    REQUIRE(ring.size() == 24);
    for (std::size_t i = 0; i < 24; ++i) {
      CHECK(machine.devices[ring[i]].host == i / 8);
      if (i % 8 < 7) CHECK(way(machine, ring[i], ring[i + 1]).size() == 1);
    }
  }
}

TEST_CASE("over several hosts a ring enters and leaves each host where its way out is widest") {
  // A square of cables 0 1 2 3; GPUs 2 and 3 have twice the others' width to the host, and NICs are no limit.
  std::string cables;
  for (int gpu = 0; gpu < 4; ++gpu)
    cables += fmt::format(
        "{{from: gpu{}, to: gpu{}, bandwidth: 25GB/s, latency: 1us}}, "
        "{{from: gpu{}, to: host, bandwidth: {}GB/s, latency: 5us}}{}",
        gpu, (gpu + 1) % 4, gpu, gpu < 2 ? 8 : 16, gpu < 3 ? ", " : "");
  const Machine machine = inline_host(4, fmt::format("{{kind: custom, links: [{}]}}", cables), 2, "1000GB/s");
  const Rings rings = find_rings(all_devices(machine), machine);
  REQUIRE(rings.size() == 1);
  REQUIRE(rings[0].size() == 8);
  for (const std::size_t host : {0u, 1u}) {
    const std::uint32_t enters = rings[0][4 * host] % 4, leaves = rings[0][4 * host + 3] % 4;
    CHECK(std::min(enters, leaves) == 2);
    CHECK(std::max(enters, leaves) == 3);
  }
}

namespace {

/// Hosts with several NICs of 10 GB/s, and wires inside that limit nothing.
Machine hosts_with_nics(int hosts, int devices, int nics, const std::string& fabric = "kind: switch") {
  return build_machine(
      read_cluster(parse_yaml(
          fmt::format(
              "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{{}, bandwidth: "
              "10GB/s, latency: 1us, nics: {}}}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], "
              "interconnect: {{kind: nvswitch, bandwidth: 10000GB/s}}}}}}, devices: {{ideal: {{peak: "
              "{{fp32: 1TFLOPS}}, memory: 1GiB, memory_bandwidth: 1GB/s, efficiency: 1.0}}}}}}",
              hosts, fabric, nics, devices),
          "c")),
      0);
}

}  // namespace

TEST_CASE("over several hosts every NIC that a rank is near to carries as many rings as any other [law]") {
  std::mt19937 random(20261123);
  for (int i = 0; i < 60; ++i) {
    const int hosts = std::uniform_int_distribution(2, 5)(random);
    const int devices = std::uniform_int_distribution(1, 8)(random);
    const int nics = std::uniform_int_distribution(1, 8)(random);
    CAPTURE(i);
    CAPTURE(hosts);
    CAPTURE(devices);
    CAPTURE(nics);
    const Machine machine = hosts_with_nics(hosts, devices, nics);
    const Rings rings = find_rings(all_devices(machine), machine);
    CHECK(rings.size() == static_cast<std::size_t>(std::min(devices, nics)));
    std::map<LinkId, int> crossings;
    for (const std::vector<std::uint32_t>& ring : rings) {
      std::vector<std::uint32_t> sorted = ring;
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted == all_devices(machine));
      for (std::size_t k = 0; k < ring.size(); ++k)
        for (const LinkId link : way(machine, ring[k], ring[(k + 1) % ring.size()]))
          if (machine.links[link].kind == LinkKind::nic) ++crossings[link];
    }
    CHECK(crossings.size() == static_cast<std::size_t>(2 * hosts * std::min(devices, nics)));
    for (const auto& [link, count] : crossings) CHECK(count == 1);
    // So a sum takes what the ring's closed form says with the NICs of a host side by side.
    const double n = hosts * devices, bytes = 1e9;
    CHECK(estimate_s(ring_all_reduce(all_devices(machine), machine), machine, bytes) -
              estimate_s(ring_all_reduce(all_devices(machine), machine), machine, 0) ==
          approx(2 * (n - 1) / n * bytes / (std::min(devices, nics) * 10e9)).epsilon(1e-3));
  }
}

TEST_CASE("with an even number of hosts rings stay between NICs of one number: on their rail") {
  for (const int hosts : {2, 4, 6}) {
    const Machine machine =
        hosts_with_nics(hosts, 4, 4, fmt::format("kind: rail, hosts_per_group: {}", hosts));
    for (const std::vector<std::uint32_t>& ring : find_rings(all_devices(machine), machine))
      for (std::size_t k = 0; k < ring.size(); ++k) {
        const std::uint32_t from = ring[k], to = ring[(k + 1) % ring.size()];
        if (machine.devices[from].host == machine.devices[to].host) continue;
        CHECK(from % 4 == to % 4);
        CHECK(way(machine, from, to).size() == 2);  // the two NICs: no spine
      }
  }
}

TEST_CASE("double binary trees take no longer over more NICs, and over k up to k times less [law]") {
  for (const int nics : {2, 4, 8}) {
    CAPTURE(nics);
    const Machine one = hosts_with_nics(5, 8, 1), several = hosts_with_nics(5, 8, nics);
    const auto time_s = [](const Machine& machine) {
      return estimate_s(double_binary_tree_all_reduce(all_devices(machine), machine, 1e9), machine, 1e9);
    };
    CHECK(time_s(one) / time_s(several) > 0.6 * nics);
    CHECK(time_s(one) / time_s(several) < 1.05 * nics);
  }
}

TEST_CASE("some of a host's devices have the rings of the cables among them") {
  // GPUs 0 to 3 of a DGX-1 with P100 are a full mesh of four: one cycle, both ways.
  const Machine machine = catalogue("dgx1-p100", 1);
  const Rings rings = find_rings({0, 1, 2, 3}, machine);
  CHECK(rings.size() == 2);
  for (const std::vector<std::uint32_t>& ring : rings)
    for (std::size_t i = 0; i < 4; ++i) CHECK(way(machine, ring[i], ring[(i + 1) % 4]).size() == 1);
}

TEST_CASE("positions by host, hosts in the order of their first rank") {
  const Machine machine = inline_host(2, "{kind: none}", 3);
  CHECK(positions_by_host({4, 0, 5, 1, 2}, machine) == Rings{{0, 2}, {1, 3}, {4}});
}

TEST_CASE(
    "hosts in any order of ranks: positions are grouped by host, in the order of their first rank [law]") {
  const Machine machine = inline_host(3, "{kind: none}", 5);
  std::mt19937 random(20261128);
  for (int i = 0; i < 200; ++i) {
    std::vector<EndpointId> ranks = all_devices(machine);
    // From wholly sorted to wholly shuffled: those after `sorted` are.
    const int sorted = std::uniform_int_distribution(0, 15)(random);
    std::shuffle(ranks.begin() + sorted, ranks.end(), random);
    ranks.resize(std::uniform_int_distribution<std::size_t>(1, 15)(random));
    Rings expected;
    std::map<std::uint32_t, std::size_t> place;
    for (std::uint32_t k = 0; k < ranks.size(); ++k) {
      const auto [it, fresh] = place.emplace(machine.devices[ranks[k]].host, expected.size());
      if (fresh) expected.emplace_back();
      expected[it->second].push_back(k);
    }
    CHECK(positions_by_host(ranks, machine) == expected);
  }
}

TEST_CASE("ranks that are alone on their hosts are a ring in their order, and are one channel") {
  const Machine machine = hosts_with_nics(4, 2, 2);  // devices 2 h and 2 h + 1 on host h
  const std::vector<EndpointId> alone{5, 0, 7, 2};
  CHECK(find_rings(alone, machine) == Rings{{0, 1, 2, 3}});
  CHECK(channels_by_host(alone, machine) == std::vector<Rings>{{{0}}, {{1}}, {{2}}, {{3}}});
  // One of several on its host: as many channels as the host with the fewest NICs.
  CHECK(find_rings({0, 1, 2}, machine) == Rings{{0, 1, 2}});
  CHECK(find_rings({0, 1, 2, 3}, machine).size() == 2);
}
