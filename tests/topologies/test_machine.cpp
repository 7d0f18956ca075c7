// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/topologies/machines.h"

using namespace convoy;

TEST_CASE("four one-device servers on a switch talk over two NICs with exactly the fabric's latency") {
  const Machine machine = machine_of(R"(
name: lab
nodes:
  - {name: n, count: 4, server: lab-box}
fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}
servers:
  lab-box:
    devices: [{device: ideal, count: 1}]
    interconnect: {kind: pcie, bandwidth: 12GB/s, latency: 5us}
    price: 1.00USD/h
)");
  CHECK(machine.name == "lab");
  REQUIRE(machine.devices.size() == 4);
  REQUIRE(machine.links.size() == 8);
  CHECK(machine.port_count == 4);
  CHECK(machine.devices[3].name == "n3");
  CHECK(machine.endpoint_name(machine.host_endpoint(2)) == "n2");
  CHECK(way(machine, "n1", "n3") == "n1.nic.up n3.nic.down");
  CHECK(latency_s(machine, "n1", "n3") == 25 * 1e-6);
  // The device and the memory of its host are one place, so that no PCIe lies between.
  Route route;
  machine.router->route(1, machine.host_endpoint(1), route);
  CHECK(route.links.empty());
  machine.router->route(1, machine.host_endpoint(3), route);
  CHECK(names(machine, route) == "n1.nic.up n3.nic.down");
  for (const Link& link : machine.links) CHECK(link.bandwidth_Bps == 1.25e9);
  CHECK(machine.host_types.at(0).price_usd_per_h == 1.0);
}
