// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/input_error.h"
#include "tests/support/approx.h"
#include "tests/topologies/machines.h"
#include "topologies/cluster.h"

using namespace convoy;

namespace {

const std::string box =
    "servers: {box: {devices: [{device: ideal}], price: 2USD/h, host: {price: 0.5USD/h, power: 80W, "
    "reduce_bandwidth: 10GB/s}}}\n";
const std::string gigabit = "fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us}\n";

}  // namespace

TEST_CASE("a server's name and a number of nodes make a cluster on the provider's fabric") {
  const Machine machine = machine_of("{server: gcp-n1-standard-8-k80, nodes: 8}");
  CHECK(machine.name == "8 x gcp-n1-standard-8-k80");
  CHECK(machine.hosts.size() == 8);
  CHECK(machine.device_types.at(0).name == "k80");
  CHECK(way(machine, "n0", "n7") == "n0.nic.up n7.nic.down");
}

TEST_CASE("a fabric of the experiment overrides the provider's, with one NIC a host") {
  const Machine machine =
      machine_of("{server: dgx1-v100, nodes: 2, fabric: {kind: switch, bandwidth: 25Gbps, latency: 20us}}");
  CHECK(way(machine, "mem:n0", "mem:n1") == "n0.nic.up n1.nic.down");
  CHECK(way(machine, "n0.gpu7", "mem:n0") == "n0.gpu7.pcie.up n0.pcie3.uplink.up n0.socket0-1.down");
}

TEST_CASE("a scalar is the name of a catalogue cluster") {
  CHECK(build_machine(read_cluster(parse_yaml("tf-gce-k80", "c.yaml")), 0).devices.size() == 8);
}

TEST_CASE("entries of nodes keep their order, names, devices and speeds") {
  const Machine machine = machine_of(R"(
nodes:
  - {name: fast, count: 2, server: two}
  - {name: slow, server: box, speed: 0.5}
fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us}
servers:
  box: {devices: [{device: old}]}
  two: {devices: [{device: new}, {device: old}], interconnect: {kind: none}}
devices:
  new: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}
  old: {peak: {fp32: 1TFLOPS}, memory: 4GiB, memory_bandwidth: 100GB/s, efficiency: 1.0}
)");
  std::string devices;
  for (const Device& device : machine.devices)
    devices += fmt::format("{} {} {} {}; ", device.name, machine.device_types[device.type].name,
                           machine.hosts[device.host].name, device.speed);
  CHECK(devices ==
        "fast0.gpu0 new fast0 1; fast0.gpu1 old fast0 1; fast1.gpu0 new fast1 1; fast1.gpu1 old fast1 1; "
        "slow0 old slow0 0.5; ");
  CHECK(machine.device_types.size() == 2);
  CHECK(machine.hosts[2].first_device == 4);
}

TEST_CASE("devices have the issue times of their host, and equal ones in equal hosts are of one type") {
  const auto server = [](const char* name, const char* host) {
    return fmt::format(
        "{}: {{devices: [{{device: v100-sxm2-16gb}}, {{device: ideal}}], interconnect: {{kind: pcie, "
        "bandwidth: 12GB/s, latency: 5us}}{}}}",
        name, host);
  };
  const Machine machine =
      machine_of(fmt::format("nodes: [{{name: x, server: a}}, {{name: y, server: b}}, {{name: z, server: "
                             "c}}]\n{}servers: {{{}, {}, {}}}\n",
                             gigabit, server("a", ""), server("b", ", host: {issue_factor: 1.5}"),
                             server("c", ", host: {issue_factor: 1, power: 80W}")));
  const auto factor_of = [&](std::size_t device) {
    return machine.device_types[machine.devices[device].type].issue_factor;
  };
  const double of_v100 = load_device("v100-sxm2-16gb", {}).issue_factor;
  REQUIRE(of_v100 == 1);
  CHECK(factor_of(0) == of_v100);
  CHECK(factor_of(2) == 1.5 * of_v100);
  CHECK(factor_of(4) == of_v100);
  for (const std::size_t ideal : {1, 3, 5}) CHECK(factor_of(ideal) == 0);  // to which issuing costs nothing
  CHECK(machine.devices[0].type == machine.devices[4].type);
  CHECK(machine.device_types[machine.devices[0].type].name == "v100-sxm2-16gb");
  CHECK(machine.device_types[machine.devices[2].type].name == "v100-sxm2-16gb in b");
  CHECK(machine.host_types[machine.hosts[0].type].issue_factor == 0);  // not told
  CHECK(machine.host_types[machine.hosts[2].type].issue_factor == 1);
}

TEST_CASE("dedicated hosts come last, have the first node's NIC and the price of a machine without devices") {
  const Machine machine = machine_of(
      "nodes: [{name: a, count: 2, server: box, nic_bandwidth: 10Gbps}, {name: b, server: box}]\n" + gigabit +
          box,
      2);
  REQUIRE(machine.hosts.size() == 5);
  CHECK(machine.hosts[3].name == "ps0");
  CHECK(machine.hosts[4].device_count == 0);
  CHECK(machine.host_types[machine.hosts[4].type].price_usd_per_h == 0.5);
  CHECK(machine.host_types[machine.hosts[0].type].price_usd_per_h == 2.0);
  CHECK(machine.host_types[machine.hosts[4].type].reduce_bandwidth_Bps == 10e9);
  CHECK(machine.host_types[machine.hosts[4].type].host_power_w == 80);
  CHECK(way(machine, "b0", "mem:ps1") == "b0.nic.up ps1.nic.down");
  Route route;
  machine.router->route(machine.host_endpoint(4), 2, route);
  CHECK(machine.links[route.links[0]].bandwidth_Bps == 1.25e9);
  CHECK(machine.links[route.links[1]].bandwidth_Bps == 0.125e9);
}

TEST_CASE("servers of different switch fabrics are mixed, each with its own NIC") {
  const Machine machine =
      machine_of("nodes: [{name: a, server: gcp-n1-standard-8-k80}, {name: b, server: aws-p2.8xlarge}]");
  Route route;
  machine.router->route(0, 1, route);
  CHECK(names(machine, route) == "a0.nic.up b0.nic.down b0.pcie0.uplink.down b0.gpu0.pcie.down");
}

TEST_CASE("speeds are spread evenly between their bounds and depend on the seed only") {
  const auto speeds = [](int nodes, int seed) {
    const Machine machine =
        machine_of(fmt::format("server: box\nnodes: {}\nspeed_variation: {{spread: 5%, seed: {}}}\n{}{}",
                               nodes, seed, gigabit, box));
    std::vector<double> result;
    for (const Device& device : machine.devices) result.push_back(device.speed);
    return result;
  };
  const std::vector<double> thousand = speeds(1000, 1);
  double mean = 0, variance = 0;
  for (const double speed : thousand) {
    CHECK(speed >= 0.95);
    CHECK(speed <= 1.05);
    mean += speed / 1000;
  }
  for (const double speed : thousand) variance += (speed - mean) * (speed - mean) / 1000;
  // Uniform on [0.95, 1.05]: deviation 0.1 / sqrt(12) = 0.0289, and that of the mean of 1000 is 0.0009.
  CHECK(std::abs(mean - 1) < 4 * 0.0009);
  CHECK(std::sqrt(variance) == approx(0.0289).epsilon(0.1));
  CHECK(std::set<double>(thousand.begin(), thousand.end()).size() == 1000);
  const std::vector<double> ten = speeds(10, 1);
  CHECK(ten == std::vector<double>(thousand.begin(), thousand.begin() + 10));
  CHECK(ten != speeds(10, 2));
}

TEST_CASE("the first speeds are those of splitmix64 with its published outputs") {
  // splitmix64 of seed 1234567 begins with 6457827717110365317, 3203168211198807973 (reference test vector).
  const Machine machine =
      machine_of("server: box\nnodes: 2\nspeed_variation: {spread: 50%, seed: 1234567}\n" + gigabit + box);
  CHECK(machine.devices[0].speed == approx(0.5 + 6457827717110365317.0 / 0x1p64).epsilon(1e-14));
  CHECK(machine.devices[1].speed == approx(0.5 + 3203168211198807973.0 / 0x1p64).epsilon(1e-14));
}

TEST_CASE("devices slow down where two of a board are used, and only there") {
  const auto speeds = [](int devices) {
    const Machine machine =
        machine_of(fmt::format("server: trio\nnodes: 1\ndevices_per_node: {}\n{}servers: {{trio: {{devices: "
                               "[{{device: ideal, count: 5}}], "
                               "interconnect: {{kind: none}}, boards: {{devices: 2, speed: 90%}}}}}}\n",
                               devices, gigabit));
    std::vector<double> result;
    for (const Device& device : machine.devices) result.push_back(device.speed);
    return result;
  };
  CHECK(speeds(1) == std::vector<double>{1});
  CHECK(speeds(2) == std::vector<double>{0.9, 0.9});
  CHECK(speeds(3) == std::vector<double>{0.9, 0.9, 1});
  CHECK(speeds(5) == std::vector<double>{0.9, 0.9, 0.9, 0.9, 1});
}

TEST_CASE("a machine's step jitter is its cluster's, else the greatest of its servers'") {
  const std::string servers =
      "nodes: [{name: a, server: x}, {name: b, server: y}]\nservers: {x: {devices: [{device: ideal}], "
      "step_jitter: 1%}, "
      "y: {devices: [{device: ideal}], step_jitter: 3%}}\n";
  CHECK(machine_of(gigabit + servers).step_jitter == 0.03);
  CHECK(machine_of("step_jitter: 0%\n" + gigabit + servers).step_jitter == 0);
  CHECK(machine_of("server: box\nnodes: 2\n" + gigabit + box).step_jitter == 0);
}

TEST_CASE("a cluster's communication overhead is the machine's") {
  CHECK(machine_of("server: box\ncommunication: {overhead: 50us}\n" + box).collective_overhead_s ==
        50 * 1e-6);
  CHECK(machine_of("server: box\n" + box).collective_overhead_s == 0);
}

TEST_CASE("ports are dense, and a port has one medium or both directions of one cable") {
  const Machine machine = machine_of("{server: dgx1-v100, nodes: 3}", 1);
  std::vector<std::vector<Link>> links_of(machine.port_count);
  for (const Link& link : machine.links) links_of.at(link.port).push_back(link);
  for (const auto& links : links_of) {
    REQUIRE(links.size() == 2);
    CHECK(port_name(links[0]) == port_name(links[1]));
    CHECK(links[0].name != links[1].name);
  }
}

TEST_CASE("dedicated hosts: like the first node, or what the cluster says, whatever the order of its nodes") {
  const auto cluster = [](bool fast_first, const std::string& dedicated) {
    const std::string fast = "{name: f, server: fast, nic_bandwidth: 25Gbps}",
                      slow = "{name: s, server: slow}";
    return fmt::format(
        "nodes: [{}, {}]\nfabric: {{kind: switch, bandwidth: 10Gbps, latency: 1us}}\nservers: {{fast: "
        "{{devices: "
        "[{{device: ideal}}], price: 3USD/h, host: {{reduce_bandwidth: 2GB/s, price: 1USD/h}}}}, slow: "
        "{{devices: "
        "[{{device: ideal}}], price: 2USD/h}}}}\ndevices: {{ideal: {{peak: {{fp32: 1TFLOPS}}, memory: 1GiB, "
        "memory_bandwidth: 1GB/s, efficiency: 1.0}}}}\n{}",
        fast_first ? fast : slow, fast_first ? slow : fast, dedicated);
  };
  const auto facts = [](const std::string& text) {
    const Machine machine = machine_of(text, 1);
    const HostType& type = machine.host_types[machine.hosts.back().type];
    double nic_Bps = 0;
    for (const Link& link : machine.links)
      if (link.name == "ps0.nic.up") nic_Bps = link.bandwidth_Bps;
    return std::tuple{type.server, type.price_usd_per_h, nic_Bps};
  };
  CHECK(facts(cluster(true, "")) == std::tuple{std::string("fast"), 1.0, 25e9 / 8});
  CHECK(facts(cluster(false, "")) == std::tuple{std::string("slow"), 2.0, 10e9 / 8});
  for (const bool fast_first : {true, false}) {
    CHECK(facts(cluster(fast_first, "dedicated: {server: fast}\n")) ==
          std::tuple{std::string("fast"), 1.0, 10e9 / 8});
    CHECK(facts(cluster(fast_first, "dedicated: {server: slow, nic_bandwidth: 40Gbps, price: 0.5USD/h}\n")) ==
          std::tuple{std::string("slow"), 0.5, 40e9 / 8});
  }
}

TEST_CASE("a dedicated host of another kind of server has the NIC that such a server has among its own") {
  const auto cluster = [](const std::string& nodes, const std::string& dedicated) {
    return fmt::format(
        "nodes: [{}]\nservers:\n  quick: {{devices: [{{device: ideal}}], fabric: {{kind: switch, bandwidth: "
        "25Gbps, "
        "latency: 3us}}}}\n  slow: {{devices: [{{device: ideal}}], fabric: {{kind: switch, bandwidth: "
        "10Gbps, "
        "latency: 20us}}}}\ndevices: {{ideal: {{peak: {{fp32: 1TFLOPS}}, memory: 1GiB, memory_bandwidth: "
        "1GB/s, "
        "efficiency: 1.0}}}}\n{}",
        nodes, dedicated);
  };
  const auto nic_of = [](const Machine& machine, const std::string& host) {
    for (const Link& link : machine.links)
      if (link.name == host + ".nic.up") return std::pair{link.bandwidth_Bps, link.latency_s};
    return std::pair{0.0, 0.0};
  };
  for (const std::string kind : {"quick", "slow"}) {
    const Machine own = machine_of(cluster(fmt::format("{{name: n, server: {}, count: 2}}", kind), ""), 0);
    CHECK(nic_of(own, "n0").first > 0);
    for (const std::string workers : {"quick", "slow"}) {
      CAPTURE(kind);
      CAPTURE(workers);
      const Machine machine = machine_of(cluster(fmt::format("{{name: w, server: {}, count: 2}}", workers),
                                                 fmt::format("dedicated: {{server: {}}}\n", kind)),
                                         1);
      CHECK(nic_of(machine, "ps0") == nic_of(own, "n0"));
    }
  }
}

TEST_CASE("a rate that is drawn for a NIC is one of its own on a torus, as one that is given") {
  for (const char* own : {"nic_bandwidth: 1Gbps", "nic_spread: 10%"}) {
    CAPTURE(own);
    const Machine machine = machine_of(fmt::format(
        "nodes: [{{name: n, count: 4, server: box, {}}}]\n"
        "fabric: {{kind: torus, dims: [2, 2], bandwidth: 1Gbps, latency: 1us, protocol: tcp}}\n{}",
        own, box));
    Route route;
    machine.router->route(machine.host_endpoint(0), machine.host_endpoint(1), route);
    CHECK(names(machine, route).find("n0.nic") != std::string::npos);
    CHECK(names(machine, route).find("n1.nic") != std::string::npos);
  }
}

TEST_CASE("NIC rates are spread evenly around their bandwidth and depend on the seed only") {
  const auto rates_of = [](int nodes, int seed) {
    const Machine machine = machine_of(
        fmt::format("nodes: [{{name: n, count: {}, server: box, nic_bandwidth: 10Gbps, nic_spread: 10%}}]\n"
                    "speed_variation: {{spread: 5%, seed: {}}}\n{}{}",
                    nodes, seed, gigabit, box));
    std::vector<double> rates;
    Route route;
    for (std::uint32_t host = 0; host < machine.hosts.size(); ++host) {
      machine.router->route(machine.host_endpoint(host),
                            machine.host_endpoint((host + 1) % static_cast<std::uint32_t>(nodes)), route);
      rates.push_back(machine.links[route.links.front()].bandwidth_Bps);
    }
    return rates;
  };
  const std::vector<double> rates = rates_of(2000, 1);
  double mean = 0, least = rates[0], most = rates[0];
  for (const double rate : rates)
    mean += rate / 2000, least = std::min(least, rate), most = std::max(most, rate);
  CHECK(least >= 0.9 * 1.25e9);
  CHECK(most <= 1.1 * 1.25e9);
  CHECK(least < 0.901 * 1.25e9);
  CHECK(most > 1.099 * 1.25e9);
  // An even spread of 10% has a standard deviation of 5.8%: the mean of 2,000 is within 0.5% of it (4 sigma).
  CHECK(mean == approx(1.25e9).epsilon(0.005));
  const std::vector<double> fewer = rates_of(3, 1);
  for (std::size_t i = 0; i < fewer.size(); ++i) CHECK(fewer[i] == rates[i]);
  CHECK(rates_of(3, 2) != fewer);
}
