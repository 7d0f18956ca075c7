// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/approx.h"
#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

constexpr double microsecond = 1e-6;

std::string two_servers(int devices, const std::string& interconnect, const std::string& rest = "") {
  return fmt::format(
      "nodes: [{{name: n, count: 2, server: box}}]\nfabric: {{kind: switch, bandwidth: 10Gbps, latency: "
      "20us}}\n"
      "servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {}{}}}}}\n",
      devices, interconnect, rest);
}

double bandwidth_Bps(const Machine& machine, const std::string& name) {
  for (const Link& link : machine.links)
    if (link.name == name) return link.bandwidth_Bps;
  throw std::out_of_range("no link " + name);
}

// The hybrid cube mesh of a DGX-1V as `nvidia-smi topo -m` prints it: bonded NVLinks of each pair.
constexpr int cube_mesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                 {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                 {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

std::string cube_mesh_text() {
  std::string text = "[";
  for (const auto& row : cube_mesh) {
    text += text.size() > 1 ? ", [" : "[";
    for (int b = 0; b < 8; ++b) text += (b > 0 ? ", " : "") + std::to_string(row[b]);
    text += "]";
  }
  return text + "]";
}

}  // namespace

TEST_CASE("flat PCIe gives each device lanes of its own to the root") {
  const Machine machine = machine_of(two_servers(2, "{kind: pcie, bandwidth: 12GB/s, latency: 5us}"));
  CHECK(machine.port_count == 2 * (2 + 1));
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "n0.gpu0.pcie.up n0.gpu1.pcie.down");
  CHECK(latency_s(machine, "n0.gpu0", "n0.gpu1") == 5 * microsecond);
  CHECK(way(machine, "n0.gpu1", "mem:n0") == "n0.gpu1.pcie.up");
  CHECK(way(machine, "mem:n0", "n0.gpu1") == "n0.gpu1.pcie.down");
  CHECK(way(machine, "n0.gpu1", "n1.gpu0") == "n0.gpu1.pcie.up n0.nic.up n1.nic.down n1.gpu0.pcie.down");
  CHECK(latency_s(machine, "n0.gpu1", "n1.gpu0") == approx(25 * microsecond).epsilon(1e-12));
  CHECK(way(machine, "mem:n0", "mem:n1") == "n0.nic.up n1.nic.down");
  CHECK(bandwidth_Bps(machine, "n0.gpu0.pcie.up") == 12e9);
}

TEST_CASE("PCIe switches share their uplinks, and sockets the link between them") {
  const Machine machine = machine_of(two_servers(
      4,
      "{kind: pcie, bandwidth: 12GB/s, latency: 4us, switches: [[0, 1], [2], [3]], uplink: 10GB/s, "
      "sockets: [[0], [1, 2]], socket_link: 8GB/s, hop_latency: 1us, efficiency: 50%}"));
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "n0.gpu0.pcie.up n0.gpu1.pcie.down");
  CHECK(way(machine, "n0.gpu2", "n0.gpu3") ==
        "n0.gpu2.pcie.up n0.pcie1.uplink.up n0.pcie2.uplink.down n0.gpu3.pcie.down");
  CHECK(way(machine, "n0.gpu0", "n0.gpu3") ==
        "n0.gpu0.pcie.up n0.pcie0.uplink.up n0.socket0-1.up n0.pcie2.uplink.down n0.gpu3.pcie.down");
  CHECK(way(machine, "n0.gpu3", "mem:n0") == "n0.gpu3.pcie.up n0.pcie2.uplink.up n0.socket0-1.down");
  CHECK(latency_s(machine, "n0.gpu0", "n0.gpu3") == approx(7 * microsecond).epsilon(1e-12));
  CHECK(bandwidth_Bps(machine, "n0.pcie0.uplink.up") == 5e9);
  CHECK(bandwidth_Bps(machine, "n0.socket0-1.up") == 8e9);
  CHECK(bandwidth_Bps(machine, "n0.gpu0.pcie.up") == 6e9);
}

TEST_CASE("keys of PCIe switches without switches, and of sockets without sockets, say what they need") {
  const auto error = [](const std::string& interconnect) {
    try {
      machine_of(two_servers(4, interconnect));
    } catch (const InputError& caught) {
      return std::string(caught.what());
    }
    return std::string("none");
  };
  for (const char* key :
       {"uplink: 10GB/s", "hop_latency: 1us", "sockets: [[0], [1]]", "socket_link: 8GB/s"}) {
    CAPTURE(key);
    CHECK(error(fmt::format("{{kind: pcie, bandwidth: 12GB/s, {}}}", key)).find(": needs `switches`: ") !=
          std::string::npos);
  }
  const std::string with_switches = "{kind: pcie, bandwidth: 12GB/s, switches: [[0, 1], [2, 3]], ";
  CHECK(error(with_switches + "socket_link: 8GB/s}").find(": needs `sockets`: ") != std::string::npos);
  // What the messages offer is taken.
  CHECK(error(with_switches + "sockets: [[0], [1]], socket_link: 8GB/s}") == "none");
}

TEST_CASE("the DGX-1's cube mesh uses NVLink between its 16 pairs and PCIe between the other 12") {
  const Machine machine = machine_of(two_servers(
      8, "{kind: nvlink, bandwidth: 25GB/s, latency: 2us, matrix: " + cube_mesh_text() +
             ", pcie: {bandwidth: 12GB/s, latency: 4us, switches: [[0, 1], [2, 3], [4, 5], [6, 7]], "
             "sockets: [[0, 1], [2, 3]], socket_link: 9GB/s}}"));
  int over_nvlink = 0, links = 0;
  for (int a = 0; a < 8; ++a)
    for (int b = a + 1; b < 8; ++b) {
      const std::string from = fmt::format("n0.gpu{}", a), to = fmt::format("n0.gpu{}", b);
      if (cube_mesh[a][b] == 0) {
        CHECK(way(machine, from, to).starts_with(from + ".pcie.up "));
        CHECK(way(machine, from, to).ends_with(" " + to + ".pcie.down"));
        continue;
      }
      const std::string cable = fmt::format("{}-gpu{}.nvlink", from, b);
      CHECK(way(machine, from, to) == cable + ".up");
      CHECK(way(machine, to, from) == cable + ".down");
      CHECK(bandwidth_Bps(machine, cable + ".up") == cube_mesh[a][b] * 25e9);
      ++over_nvlink;
      links += cube_mesh[a][b];
    }
  CHECK(over_nvlink == 16);
  CHECK(links == 8 * 6 / 2);  // every V100 has six links
  CHECK(way(machine, "n0.gpu0", "n0.gpu5") ==
        "n0.gpu0.pcie.up n0.pcie0.uplink.up n0.socket0-1.up n0.pcie2.uplink.down n0.gpu5.pcie.down");
  CHECK(way(machine, "n1.gpu0", "mem:n1") == "n1.gpu0.pcie.up n1.pcie0.uplink.up");
}

TEST_CASE("NVLink pairs and a matrix are two ways to say the same") {
  const auto links_of = [](const std::string& keys) {
    std::string text;
    for (const Link& link : machine_of(two_servers(3, "{kind: nvlink, bandwidth: 20GB/s, " + keys +
                                                          ", pcie: {bandwidth: 12GB/s}}"))
                                .links)
      text += fmt::format("{} {}\n", link.name, link.bandwidth_Bps);
    return text;
  };
  CHECK(links_of("pairs: [[1, 0], [2, 1, 2]]") == links_of("matrix: [[0, 1, 0], [1, 0, 2], [0, 2, 0]]"));
}

TEST_CASE("NVLink without pairs joins all devices, and nothing limits the way to the NIC without PCIe") {
  const Machine machine = machine_of(two_servers(3, "{kind: nvlink, bandwidth: 25GB/s, latency: 2us}"));
  CHECK(machine.port_count == 2 * (3 + 1));
  CHECK(way(machine, "n0.gpu2", "n0.gpu1") == "n0.gpu1-gpu2.nvlink.down");
  CHECK(way(machine, "n0.gpu2", "n1.gpu1") == "n0.nic.up n1.nic.down");
  CHECK(way(machine, "n0.gpu2", "mem:n0") == "");
}

TEST_CASE("an NVSwitch joins any two devices, and the NIC is over PCIe") {
  const Machine machine =
      machine_of(two_servers(4,
                             "{kind: nvswitch, bandwidth: 300GB/s, latency: 2us, efficiency: 80%, pcie: "
                             "{bandwidth: 24GB/s, latency: 4us}}"));
  CHECK(way(machine, "n0.gpu3", "n0.gpu1") == "n0.gpu3.nvswitch.up n0.gpu1.nvswitch.down");
  CHECK(latency_s(machine, "n0.gpu3", "n0.gpu1") == 2 * microsecond);
  CHECK(bandwidth_Bps(machine, "n0.gpu3.nvswitch.up") == approx(240e9));
  CHECK(way(machine, "n0.gpu3", "n1.gpu1") == "n0.gpu3.pcie.up n0.nic.up n1.nic.down n1.gpu1.pcie.down");
}

TEST_CASE("several NICs hang at the PCIe switches, and a device takes the nearest") {
  const Machine machine = machine_of(R"(
nodes: [{name: n, count: 2, server: box}]
fabric: {kind: switch, bandwidth: 100Gbps, latency: 2us, nics: 2}
servers:
  box:
    devices: [{device: ideal, count: 4}]
    interconnect: {kind: pcie, bandwidth: 12GB/s, switches: [[0, 1], [2, 3]]}
)");
  CHECK(way(machine, "n0.gpu1", "n1.gpu2") == "n0.gpu1.pcie.up n0.nic0.up n1.nic1.down n1.gpu2.pcie.down");
  CHECK(way(machine, "n0.gpu3", "n1.gpu0") == "n0.gpu3.pcie.up n0.nic1.up n1.nic0.down n1.gpu0.pcie.down");
}

TEST_CASE("custom cables inside a server are used by least latency") {
  const Machine machine =
      machine_of(two_servers(3, R"({kind: custom, switches: [plx], nics_at: [plx], links: [
    {from: gpu0, to: plx, bandwidth: 12GB/s, latency: 1us}, {from: gpu1, to: plx, bandwidth: 12GB/s, latency: 1us},
    {from: plx, to: host, bandwidth: 10GB/s, latency: 2us}, {from: gpu2, to: host, bandwidth: 6GB/s, latency: 1us},
    {from: gpu0, to: gpu1, bandwidth: 20GB/s, latency: 1us}]})"));
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "n0.gpu0-gpu1.up");
  CHECK(way(machine, "n0.gpu2", "n0.gpu0") == "n0.gpu2-host.up n0.plx-host.down n0.gpu0-plx.down");
  CHECK(way(machine, "n0.gpu1", "n1.gpu2") ==
        "n0.gpu1-plx.up n0.nic.up n1.nic.down n1.plx-host.up n1.gpu2-host.down");
}

TEST_CASE("devices in one place exchange data over no link") {
  const Machine machine = machine_of(two_servers(2, "{kind: none}"));
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "");
  CHECK(latency_s(machine, "n0.gpu0", "n0.gpu1") == 0);
  CHECK(way(machine, "n0.gpu0", "n1.gpu1") == "n0.nic.up n1.nic.down");
}

TEST_CASE("copies through host memory are one duplex cable that all ways out of the devices share") {
  const Machine one = machine_of(two_servers(1, "{kind: none}", ", host: {copy_bandwidth: 6GB/s}"));
  CHECK(way(one, "n0", "n1") == "n0.copy.up n0.nic.up n1.nic.down n1.copy.down");
  CHECK(way(one, "n0", "mem:n0") == "n0.copy.up");
  CHECK(way(one, "mem:n0", "mem:n1") == "n0.nic.up n1.nic.down");
  const Machine two =
      machine_of(two_servers(2, "{kind: pcie, bandwidth: 12GB/s}", ", host: {copy_bandwidth: 6GB/s}"));
  CHECK(way(two, "n0.gpu0", "n0.gpu1") == "n0.gpu0.pcie.up n0.gpu1.pcie.down");
  CHECK(way(two, "n0.gpu0", "n1.gpu1") ==
        "n0.gpu0.pcie.up n0.copy.up n0.nic.up n1.nic.down n1.copy.down n1.gpu1.pcie.down");
}

TEST_CASE("devices_per_node uses the first devices of each host, and their links only") {
  const std::string four = two_servers(4, "{kind: pcie, bandwidth: 12GB/s, switches: [[0, 1], [2, 3]]}");
  const Machine two = machine_of("devices_per_node: 2\n" + four);
  CHECK(two.devices.size() == 4);
  CHECK(two.devices[3].name == "n1.gpu1");
  CHECK(two.port_count == 2 * (2 + 1 + 1));  // lanes, one switch's uplink to the NIC, the NIC
  const Machine one = machine_of("devices_per_node: 1\n" + four);
  CHECK(one.devices[1].name == "n1");
  CHECK(way(one, "n0", "n1") == "n0.nic.up n1.nic.down");
}
