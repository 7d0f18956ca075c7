// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "tests/support/approx.h"
#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

std::string cluster_text(int nodes, int devices, const std::string& fabric) {
  return fmt::format(
      "server: box\nnodes: {}\nfabric: {}\n"
      "servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {{kind: custom, switches: "
      "[sw0, sw1], "
      "nics_at: [sw0, sw1], links: [{{from: gpu0, to: sw0, bandwidth: 50GB/s}}, {{from: gpu1, to: sw1, "
      "bandwidth: "
      "50GB/s}}, {{from: sw0, to: host, bandwidth: 50GB/s}}, {{from: sw1, to: host, bandwidth: "
      "50GB/s}}]}}}}}}\n",
      nodes, fabric, devices);
}

/// Bytes a second that cables between switches carry in one direction.
double sum_Bps(const Machine& machine, const std::string& part) {
  double sum = 0;
  for (const Link& link : machine.links)
    if (link.name.find(part) != std::string::npos && link.name.ends_with(".up")) sum += link.bandwidth_Bps;
  return sum;
}

}  // namespace

TEST_CASE("rail: equal NICs of a group are one switch apart, others go over a spine") {
  const Machine machine = machine_of(cluster_text(8, 2,
                                                  "{kind: rail, bandwidth: 10GB/s, latency: 2us, nics: 2, "
                                                  "hosts_per_group: 4, spines: 2, hop_latency: 1us}"));
  CHECK(check_routes(machine) == "");
  CHECK(way(machine, "n0.gpu0", "n3.gpu0") == "n0.gpu0-sw0.up n0.nic0.up n3.nic0.down n3.gpu0-sw0.down");
  CHECK(latency_s(machine, "n0.gpu0", "n3.gpu0") == approx(2e-6));
  // Another rail of the same group: the destination is number 3 of leaf 1, 4 + 3 in all, which is odd.
  CHECK(way(machine, "n0.gpu0", "n3.gpu1") ==
        "n0.gpu0-sw0.up n0.nic0.up group0.rail0.spine1.up group0.rail1.spine1.down n3.nic1.down "
        "n3.gpu1-sw1.down");
  CHECK(way(machine, "n0.gpu1", "n5.gpu1") ==
        "n0.gpu1-sw1.up n0.nic1.up group0.rail1.spine1.up group1.rail1.spine1.down n5.nic1.down "
        "n5.gpu1-sw1.down");
  CHECK(latency_s(machine, "n0.gpu1", "n5.gpu1") == approx(4e-6));
}

TEST_CASE("rail: between its groups half of the NICs' bandwidth crosses, over the oversubscription") {
  for (const double oversubscription : {1.0, 2.0, 4.0})
    for (const int spines : {1, 3, 8}) {
      CAPTURE(oversubscription);
      CAPTURE(spines);
      const Machine machine = machine_of(cluster_text(
          16, 2,
          fmt::format(
              "{{kind: rail, bandwidth: 10GB/s, latency: 2us, nics: 2, hosts_per_group: 8, spines: {}, "
              "oversubscription: {}}}",
              spines, oversubscription)));
      // Bisection: what leaves one group of 8 hosts with two NICs of 10 GB/s.
      CHECK(sum_Bps(machine, "group0.") == approx(8 * 2 * 10e9 / oversubscription));
      CHECK(sum_Bps(machine, "group1.") == approx(8 * 2 * 10e9 / oversubscription));
    }
}

TEST_CASE("rail: what all hosts of a group send to those of another shares no cable, in any order") {
  const Machine machine = machine_of(cluster_text(
      8, 2, "{kind: rail, bandwidth: 10GB/s, latency: 2us, nics: 2, hosts_per_group: 4}"));  // four spines
  Route route;
  for (std::uint32_t shift = 0; shift < 4; ++shift) {
    std::set<LinkId> used;
    std::size_t links = 0;
    for (std::uint32_t host = 0; host < 4; ++host)
      for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
        machine.router->route(2 * host + gpu, 2 * (4 + (host + shift) % 4) + gpu, route);
        used.insert(route.links.begin(), route.links.end());
        links += route.links.size();
      }
    CHECK(used.size() == links);
  }
}

TEST_CASE("leaf and spine: bisection and lengths of ways") {
  const Machine machine = machine_of(cluster_text(8, 2,
                                                  "{kind: fat_tree, bandwidth: 10GB/s, latency: 2us, nics: "
                                                  "2, hosts_per_leaf: 2, spines: 4, oversubscription: 2}"));
  // Four leaves of four NICs; half of the leaves against the other half.
  CHECK(sum_Bps(machine, "leaf0.") + sum_Bps(machine, "leaf1.") == approx(4 * 2 * 10e9 / 2));
  Route route;
  for (std::uint32_t a = 0; a < 16; ++a)
    for (std::uint32_t b = 0; b < 16; ++b) {
      machine.router->route(a, b, route);
      const std::uint32_t host_a = a / 2, host_b = b / 2;
      const std::size_t fabric_links = host_a == host_b ? 0 : host_a / 2 == host_b / 2 ? 2 : 4;
      const std::size_t inner = a == b ? 0 : host_a == host_b ? 4 : 2;  // over the host, or to the NICs
      CHECK(route.links.size() == fabric_links + inner);
    }
}

TEST_CASE("two sites with a WAN: ways within a site stay there, others cross the WAN once") {
  const Machine machine = machine_of(cluster_text(5, 2,
                                                  "{kind: sites, sites: [{hosts: 2, fabric: {kind: switch, "
                                                  "bandwidth: 10GB/s, latency: 2us, nics: 2}}, {hosts: 3, "
                                                  "fabric: {kind: fat_tree, bandwidth: 5GB/s, latency: 4us, "
                                                  "nics: 2, hosts_per_leaf: 2}}], wan: {bandwidth: "
                                                  "1GB/s, latency: 20ms, efficiency: 90%}}"));
  CHECK(check_routes(machine) == "");
  CHECK(way(machine, "n0.gpu0", "n1.gpu1") == "n0.gpu0-sw0.up n0.nic0.up n1.nic1.down n1.gpu1-sw1.down");
  CHECK(way(machine, "n0.gpu0", "n2.gpu1") ==
        "n0.gpu0-sw0.up n0.nic0.up site0.gateway.nic0.down wan0-1.up site1.gateway.nic0.up leaf1.spine1.up "
        "leaf0.spine1.down n2.nic1.down n2.gpu1-sw1.down");
  CHECK(latency_s(machine, "n0.gpu0", "n2.gpu1") == approx(2e-6 + 20e-3 + 4e-6));
  CHECK(sum_Bps(machine, "wan") == approx(0.9e9));  // the bisection
  for (const Link& link : machine.links) {
    if (link.name.starts_with("n0.nic")) CHECK(link.bandwidth_Bps == 10e9);
    if (link.name.starts_with("n4.nic")) CHECK(link.bandwidth_Bps == 5e9);
  }
}

TEST_CASE("sites: every two have a cable, and dedicated servers are in the last one") {
  const std::string site = "{hosts: 1, fabric: {kind: switch, bandwidth: 10GB/s, latency: 2us}}";
  const Machine machine = machine_of(
      "server: box\nnodes: 3\nservers: {box: {devices: [{device: ideal}]}}\nfabric: {kind: sites, sites: [" +
          site + ", " + site + ", " + site + "], wan: {bandwidth: 1GB/s, latency: 1ms}}\n",
      1);
  CHECK(way(machine, "n0", "n2") ==
        "n0.nic.up site0.gateway.nic.down wan0-2.up site2.gateway.nic.up n2.nic.down");
  CHECK(way(machine, "n2", "n1") ==
        "n2.nic.up site2.gateway.nic.down wan1-2.down site1.gateway.nic.up n1.nic.down");
  CHECK(way(machine, "mem:ps0", "n2") == "ps0.nic.up n2.nic.down");
}

TEST_CASE("what is wrong with rails and sites is told where it stands") {
  const auto fabric_error = [](const std::string& fabric, int nodes = 2) {
    return error_of(fmt::format(
        "server: box\nnodes: {}\nfabric: {}\nservers: {{box: {{devices: [{{device: ideal}}]}}}}\n", nodes,
        fabric));
  };
  CHECK(fabric_error("{kind: rail, bandwidth: 1GB/s, latency: 1us}").find("'hosts_per_group' is missing") !=
        std::string::npos);
  CHECK(fabric_error("{kind: rail, bandwidth: 1GB/s, latency: 1us, hosts_per_group: 0}")
            .find("hosts_per_group: 0") != std::string::npos);
  const std::string site = "{hosts: 1, fabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}}";
  CHECK(fabric_error("{kind: sites, sites: [" + site + "], wan: {bandwidth: 1GB/s, latency: 1ms}}") ==
        "c.yaml:3:30: cluster.fabric.sites: 1 sites; 2 to 64 are allowed");
  CHECK(fabric_error("{kind: sites, sites: [" + site + ", " + site + "]}").find("'wan' is missing") !=
        std::string::npos);
  CHECK(fabric_error("{kind: sites, sites: [" + site + ", " + site + ", " + site +
                     "], wan: {bandwidth: 1GB/s, latency: 1ms}}") ==
        "c.yaml:3:9: cluster.fabric: the sites have places for 3 hosts, the cluster has 2");
  CHECK(fabric_error("{kind: sites, sites: [" + site +
                     ", {hosts: 1, fabric: {kind: switch, bandwidth: 1GB/s, latency: "
                     "1us, nics: 2}}], wan: {bandwidth: 1GB/s, latency: 1ms}}")
            .find("hosts must have as many NICs as those of the first site") != std::string::npos);
}
