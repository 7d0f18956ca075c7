// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int in(int low, int high) {
    return static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1)) + low;
  }
  bool coin() { return in(0, 1) == 1; }

 private:
  std::mt19937 engine_;
};

std::string random_interior(Random& random, int devices) {
  const std::string pcie = fmt::format("bandwidth: {}GB/s, latency: {}us", random.in(1, 30), random.in(0, 9));
  switch (random.in(0, 4)) {
    case 0:
      return "{kind: none}";
    case 1:
      return "{kind: pcie, " + pcie + "}";
    case 2: {
      std::string switches;
      for (int d = 0; d < devices; ++d) switches += fmt::format("{}[{}]", d > 0 ? ", " : "", d);
      return fmt::format("{{kind: pcie, {}, switches: [{}], uplink: 5GB/s, hop_latency: 1us}}", pcie,
                         switches);
    }
    case 3: {
      std::string pairs;
      for (int a = 0; a < devices; ++a)
        for (int b = a + 1; b < devices; ++b)
          if (random.coin())
            pairs += fmt::format("{}[{}, {}, {}]", pairs.empty() ? "" : ", ", a, b, random.in(1, 4));
      return fmt::format("{{kind: nvlink, bandwidth: 20GB/s, pairs: [{}], pcie: {{{}}}}}", pairs, pcie);
    }
    default:
      return fmt::format("{{kind: nvswitch, bandwidth: 300GB/s, latency: 3us, pcie: {{{}}}}}", pcie);
  }
}

/// @param symmetric receives whether ways there and back use the same cables: not with d-mod-k's choice by
///        destination, nor where two ways round a ring are equally long
std::string random_fabric(Random& random, int hosts, bool& symmetric) {
  const std::string common = fmt::format("bandwidth: {}Gbps, latency: {}us, message_overhead: {}us",
                                         random.in(1, 100), random.in(0, 40), random.in(0, 1) * 7);
  symmetric = true;
  switch (random.in(0, 8)) {
    case 0:
      return fmt::format("{{kind: switch, {}, nics: {}}}", common, random.in(1, 3));
    case 1:
      symmetric = hosts % 2 == 1;
      return "{kind: ring, " + common + "}";
    case 2:
      return "{kind: full_mesh, " + common + "}";
    case 3:
      symmetric = false;
      return fmt::format("{{kind: fat_tree, {}, hosts_per_leaf: {}, spines: {}, oversubscription: 1.5}}",
                         common, random.in(1, 4), random.in(1, 4));
    case 4:
      symmetric = false;
      return fmt::format(
          "{{kind: fat_tree, {}, levels: 3, hosts_per_leaf: {}, spines: {}, leaves_per_pod: {}, nics: {}}}",
          common, random.in(1, 3), random.in(1, 3), random.in(1, 3), random.in(1, 2));
    case 5:
      symmetric = false;
      return fmt::format("{{kind: torus, {}, dims: [{}, {}, {}]}}", common, random.in(1, 3), random.in(2, 4),
                         hosts);
    case 6:
      return fmt::format("{{kind: dragonfly, {}, groups: {}, routers: {}, hosts: {}}}", common,
                         random.in(1, 4), random.in(1, 4), hosts);
    case 7: {
      // A random tree of switches: one way between any two places, so there and back must be the same.
      const int switches = random.in(1, 5);
      std::string names, links;
      for (int s = 0; s < switches; ++s) {
        names += fmt::format("{}s{}", s > 0 ? ", " : "", s);
        if (s > 0)
          links +=
              fmt::format("{{from: s{}, to: s{}, bandwidth: 9Gbps, latency: 2us}}, ", s, random.in(0, s - 1));
      }
      for (int h = 0; h < hosts; ++h)
        links += fmt::format("{{from: n{}, to: s{}, bandwidth: 5Gbps, latency: 1us}}, ", h,
                             random.in(0, switches - 1));
      return fmt::format("{{kind: custom, switches: [{}], links: [{}]}}", names,
                         links.substr(0, links.size() - 2));
    }
    default:
      return fmt::format("{{kind: shared, {}}}", common);
  }
}

}  // namespace

TEST_CASE(
    "every two places of random machines have a way without a link twice, and back by the same cables") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const int hosts = random.in(2, 9), devices = random.in(1, 5);
    bool symmetric = true;
    const std::string fabric = random_fabric(random, hosts, symmetric);
    const std::string interior = random_interior(random, devices);
    const std::string yaml = fmt::format(
        "server: box\nnodes: {}\nfabric: {}\nservers: {{box: {{devices: [{{device: ideal, count: {}}}], "
        "interconnect: {}{}}}}}",
        hosts, fabric, devices, interior, random.coin() ? ", host: {copy_bandwidth: 6GB/s}" : "");
    CAPTURE(seed);
    CAPTURE(yaml);
    // A shared medium is the same link both ways, so that only its presence and latency can be looked at.
    const bool shared = fabric.starts_with("{kind: shared");
    CHECK(check_routes(machine_of(yaml), symmetric && !shared) == "");
  }
}

TEST_CASE("between hosts no way of any fabric is empty") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int hosts = random.in(2, 9);
    bool symmetric = true;
    const std::string fabric = random_fabric(random, hosts, symmetric);
    CAPTURE(seed);
    CAPTURE(fabric);
    const Machine machine = machine_of(
        fmt::format("server: box\nnodes: {}\nfabric: {}\nservers: {{box: {{devices: [{{device: ideal}}]}}}}",
                    hosts, fabric));
    Route route;
    for (EndpointId a = 0; a < machine.devices.size(); ++a)
      for (EndpointId b = 0; b < machine.devices.size(); ++b) {
        machine.router->route(a, b, route);
        CHECK(route.links.empty() == (a == b));
      }
  }
}
