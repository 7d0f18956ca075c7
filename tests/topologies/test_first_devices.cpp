// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/yaml_node.h"
#include "topologies/cluster.h"
#include "topologies/first_devices.h"

using namespace convoy;

namespace {

/// Two hosts of two devices and one dedicated server.
Machine whole_machine() {
  return build_machine(read_cluster(parse_yaml("{name: lab, nodes: [{name: n, count: 2, server: box}], "
                                               "fabric: {kind: switch, bandwidth: 1GB/s, latency: "
                                               "1ms}, servers: {box: {devices: [{device: ideal, count: 2}], "
                                               "interconnect: {kind: pcie, bandwidth: 2GB/s, "
                                               "latency: 1us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, "
                                               "memory: 16GiB, memory_bandwidth: 500GB/s, "
                                               "efficiency: 1.0, launch_overhead: 0us}}}",
                                               "cluster")),
                       1);
}

}  // namespace

TEST_CASE(
    "first devices: hosts without any go, dedicated servers stay, a host may keep some of its devices") {
  const Machine whole = whole_machine();
  REQUIRE(whole.hosts.size() == 3);
  const Machine one = first_devices(whole, 1);
  CHECK(one.devices.size() == 1);
  REQUIRE(one.hosts.size() == 2);
  CHECK(one.hosts[0].device_count == 1);
  CHECK(one.hosts[1].name == whole.hosts[2].name);
  const Machine three = first_devices(whole, 3);
  REQUIRE(three.hosts.size() == 3);
  CHECK(three.hosts[1].device_count == 1);
  CHECK(three.devices[2].host == 1);
}

TEST_CASE("first devices: ways are those of the whole machine, hosts' memories included") {
  const Machine whole = whole_machine();
  for (std::uint32_t count = 1; count <= 4; ++count) {
    const Machine part = first_devices(whole, count);
    for (EndpointId from = 0; from < part.endpoint_count(); ++from)
      for (EndpointId to = 0; to < part.endpoint_count(); ++to) {
        const auto in_whole = [&](EndpointId e) {
          for (EndpointId w = 0; w < whole.endpoint_count(); ++w)
            if (whole.endpoint_name(w) == part.endpoint_name(e) &&
                (w < whole.devices.size()) == (e < part.devices.size()))
              return w;
          FAIL("an endpoint of the part is not in the whole machine");
          return EndpointId{0};
        };
        Route a, b;
        part.router->route(from, to, a);
        whole.router->route(in_whole(from), in_whole(to), b);
        REQUIRE(a.links == b.links);
        REQUIRE(a.latency_s == b.latency_s);
      }
  }
}
