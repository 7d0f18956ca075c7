// SPDX-License-Identifier: MIT
// Networks as ASTRA-sim and InfraGraph describe them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "tests/support/approx.h"
#include "tests/support/working_file.h"
#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

std::string box_cluster(int nodes, const std::string& fabric, int devices = 1) {
  return fmt::format(
      "server: box\nnodes: {}\nfabric: {}\nservers: {{box: {{devices: [{{device: ideal, count: {}}}], "
      "interconnect: "
      "{{kind: pcie, bandwidth: 10GB/s, latency: 1us}}}}}}\n",
      nodes, fabric, devices);
}

Machine astra_machine(const std::string& text, int nodes, const std::string& keys = "") {
  const WorkingFile file("net.yml", text);
  return machine_of(box_cluster(nodes, "{kind: astra_sim, file: net.yml" + keys + "}"));
}

std::string astra_error(const std::string& text, int nodes = 4, const std::string& keys = "") {
  const WorkingFile file("net.yml", text);
  return error_of(box_cluster(nodes, "{kind: astra_sim, file: net.yml" + keys + "}"));
}

std::string one_dimension(const std::string& shape, int count, double latency_ns = 500) {
  return fmt::format("topology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ 50.0 ]\nlatency: [ {} ]\n", shape,
                     count, latency_ns);
}

std::string infra_error(const std::string& text, int nodes = 4, const std::string& keys = "") {
  const WorkingFile file("infra.yaml", text);
  return error_of(box_cluster(nodes, "{kind: infragraph, file: infra.yaml" + keys + "}", 2));
}

Machine infra_machine(const std::string& text, int nodes, const std::string& keys = "") {
  const WorkingFile file("infra.yaml", text);
  return machine_of(box_cluster(nodes, "{kind: infragraph, file: infra.yaml" + keys + "}", 2));
}

std::string swapped(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

/// Four servers of two NICs, each on one of two leaves, and two spines.
const std::string clos = R"(name: clos
devices:
- name: server
  components:
  - {name: xpu, choice: xpu, count: 2}
  - {name: nic, choice: nic, count: 2}
  - {name: management, choice: nic, count: 1}
  edges: [{ep1: {component: xpu}, ep2: {component: nic}, link: pcie, scheme: one2one}]
  links: [{name: pcie}]
- name: switch
  components:
  - {name: asic, choice: cpu, count: 1}
  - {name: port, choice: port, count: 16}
instances:
- {name: host, device: server, count: 4}
- {name: leaf, device: switch, count: 2}
- {name: spine, device: switch, count: 2}
links:
- {name: eth, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 100}, latency: {choice: us, us: 1}}}
- {name: up, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 50}, latency: {choice: ns, ns: 500}}}
edges:
- {ep1: {instance: "host[0:2]", component: nic}, ep2: {instance: "leaf[0]", component: "port[0:4]"}, link: eth, scheme: one2one}
- {ep1: {instance: "host[2:4]", component: nic}, ep2: {instance: "leaf[1]", component: "port[0:4]"}, link: eth, scheme: one2one}
- {ep1: {instance: leaf, component: "port[8]"}, ep2: {instance: spine, component: "port[0]"}, link: up, scheme: many2many}
)";

}  // namespace

TEST_CASE("astra_sim: a ring, a full mesh and a switch have the links and latencies of that program") {
  const double bandwidth_Bps = 50.0 * (1 << 30);  // "1 GB is 2^30 B"
  const Machine ring = astra_machine(one_dimension("Ring", 5), 5);
  CHECK(check_routes(ring) == "");
  CHECK(way(ring, "n0", "n2") == "n0-n1.up n1-n2.up");
  CHECK(way(ring, "n0", "n4") == "n4-n0.down");
  CHECK(latency_s(ring, "n0", "n3") == approx(2 * 500e-9));
  CHECK(ring.links.size() == 10);
  for (const Link& link : ring.links) CHECK(link.bandwidth_Bps == approx(bandwidth_Bps));

  const Machine mesh = astra_machine(one_dimension("FullyConnected", 4), 4);
  CHECK(check_routes(mesh, true) == "");
  CHECK(mesh.links.size() == 4 * 3);
  CHECK(latency_s(mesh, "n1", "n3") == approx(500e-9));

  const Machine star = astra_machine(one_dimension("Switch", 4), 4);
  CHECK(check_routes(star, true) == "");
  CHECK(way(star, "n1", "n3") == "n1-dim0.switch0.up n3-dim0.switch0.down");
  CHECK(latency_s(star, "n1", "n3") == approx(2 * 500e-9));
}

TEST_CASE("astra_sim: dimensions are joined, the innermost first, and those inside hosts are the servers'") {
  const std::string text =
      "topology: [ Switch, Ring, FullyConnected ]\nnpus_count: [ 2, 3, 2 ]\nbandwidth: [ 100, 50, 25 ]\n"
      "latency: [ 10, 100, 1000 ]\n";
  const Machine whole = astra_machine(text, 12);
  CHECK(check_routes(whole) == "");
  // NPU n has the coordinates n % 2, n / 2 % 3, n / 6.
  CHECK(way(whole, "n0", "n1") == "n0-dim0.switch0.up n1-dim0.switch0.down");
  CHECK(way(whole, "n1", "n3") == "n1-n3.up");
  CHECK(way(whole, "n3", "n9") == "n3-n9.up");
  CHECK(latency_s(whole, "n0", "n9") == approx((20 + 100 + 1000) * 1e-9));
  const Machine outer = astra_machine(text, 6, ", inside: 1");
  CHECK(check_routes(outer) == "");
  CHECK(way(outer, "n0", "n2") == "n2-n0.down");  // a ring of three
  CHECK(latency_s(outer, "n0", "n3") == approx(1000e-9));
  CHECK(outer.links[0].bandwidth_Bps == approx(50.0 * (1 << 30)));
}

TEST_CASE("astra_sim: without latencies the way of fewest cables is taken") {
  const Machine ring = astra_machine(one_dimension("Ring", 6, 0), 6);
  CHECK(check_routes(ring) == "");
  CHECK(way(ring, "n0", "n2") == "n0-n1.up n1-n2.up");
  CHECK(way(ring, "n5", "n1") == "n5-n0.up n0-n1.up");
}

TEST_CASE("astra_sim: wrong files are told at their place") {
  const std::string good = one_dimension("Ring", 4);
  CHECK(astra_error(good) == "no error");
  CHECK(astra_error(swapped(good, "Ring", "Rin")) ==
        "net.yml:1:13: topology: 'Rin' is not read (did you mean 'Ring'?); there are Ring, FullyConnected, "
        "Switch");
  CHECK(astra_error(swapped(good, "50.0", "50.0, 50.0"))
            .starts_with("net.yml:3:12: bandwidth: has 2 values for 1 dimensions (topology)"));
  CHECK(astra_error(swapped(good, "[ 4 ]", "[ 1 ]")).starts_with("net.yml:2:15: npus_count: "));
  CHECK(astra_error(swapped(good, "[ 500 ]", "[ -1 ]")).starts_with("net.yml:4:12: latency: "));
  CHECK(astra_error(swapped(good, "latency: [ 500 ]", "")).find("latency") != std::string::npos);
  CHECK(astra_error(good + "links: 3\n").starts_with("net.yml:5:1"));
  CHECK(astra_error(good, 3) ==
        "c.yaml:3:9: cluster.fabric: the cluster has 3 hosts, dedicated servers included, and the file 4");
  CHECK(astra_error(good, 4, ", inside: 1").find("at least one joins hosts") != std::string::npos);
}

TEST_CASE("infragraph: hosts are on their leaves, and receivers are dealt out to the spines") {
  const Machine machine = infra_machine(clos, 4);
  CHECK(check_routes(machine) == "");
  // Two devices of a host, one NIC each: device g is at NIC g.
  CHECK(way(machine, "n0.gpu0", "n1.gpu0").find("n0.nic0-leaf.0.up n1.nic0-leaf.0.down") !=
        std::string::npos);
  CHECK(way(machine, "n0.gpu0", "n2.gpu0").find("leaf.0-spine.0.up leaf.1-spine.0.down") !=
        std::string::npos);
  CHECK(way(machine, "n0.gpu0", "n2.gpu1").find("leaf.0-spine.1.up leaf.1-spine.1.down") !=
        std::string::npos);
  for (const Link& link : machine.links) {
    if (link.name.find("spine") != std::string::npos) {
      CHECK(link.bandwidth_Bps == 50e9);
      CHECK(link.latency_s == approx(500e-9));
    } else if (link.name.find("leaf") != std::string::npos) {
      CHECK(link.bandwidth_Bps == 12.5e9);
      CHECK(link.latency_s == approx(1e-6));
    }
  }
}

TEST_CASE("infragraph: receivers are dealt out at every level of switches") {
  // A fat tree of switches with four ports and half as many hosts as it could have: two pods of two leaves.
  const std::string text = R"(name: fat
devices:
- {name: server, components: [{name: xpu, choice: xpu, count: 2}, {name: nic, choice: nic}]}
- {name: switch, components: [{name: port, choice: port, count: 4}]}
instances: [{name: host, device: server, count: 8}, {name: leaf, device: switch, count: 4}, {name: middle, device: switch, count: 4}, {name: core, device: switch, count: 4}]
links: [{name: eth, bandwidth: {choice: gigabits_per_second, gigabits_per_second: 100}, latency: {choice: us, us: 1}}]
edges:
- {ep1: {instance: "host[0:2]", component: nic}, ep2: {instance: "leaf[0]", component: "port[0:2]"}, link: eth}
- {ep1: {instance: "host[2:4]", component: nic}, ep2: {instance: "leaf[1]", component: "port[0:2]"}, link: eth}
- {ep1: {instance: "host[4:6]", component: nic}, ep2: {instance: "leaf[2]", component: "port[0:2]"}, link: eth}
- {ep1: {instance: "host[6:8]", component: nic}, ep2: {instance: "leaf[3]", component: "port[0:2]"}, link: eth}
- {ep1: {instance: "leaf[0:2]", component: "port[2]"}, ep2: {instance: "middle[0:2]", component: "port[0]"}, link: eth, scheme: many2many}
- {ep1: {instance: "leaf[2:4]", component: "port[2]"}, ep2: {instance: "middle[2:4]", component: "port[0]"}, link: eth, scheme: many2many}
- {ep1: {instance: "middle[0:3:2]", component: "port[2]"}, ep2: {instance: "core[0:2]", component: "port[0]"}, link: eth, scheme: many2many}
- {ep1: {instance: "middle[1:4:2]", component: "port[2]"}, ep2: {instance: "core[2:4]", component: "port[0]"}, link: eth, scheme: many2many}
)";
  const Machine machine = infra_machine(text, 8);
  CHECK(check_routes(machine) == "");
  // Each host sends to the one as far away in the other pod: as many messages as cables, each with its own.
  std::map<std::string, int> messages;
  for (int host = 0; host < 8; ++host) {
    std::istringstream names(
        way(machine, fmt::format("n{}.gpu0", host), fmt::format("n{}.gpu0", (host + 4) % 8)));
    for (std::string name; names >> name;)
      if (name.find("middle") != std::string::npos) ++messages[name];
  }
  CHECK(messages.size() == 8 * 4);
  for (const auto& [name, count] : messages) {
    CAPTURE(name);
    CHECK(count == 1);
  }
}

TEST_CASE("infragraph: edges between the same places are one cable, and JSON is read") {
  const std::string text = R"({"infrastructure": {"name": "pair",
 "devices": [{"name": "box", "components": [{"name": "npu", "type": "npu"}, {"name": "nic", "type": "nic"}]},
  {"name": "sw", "components": [{"name": "port", "type": "nic", "count": 8}]}],
 "instances": [{"name": "a", "device": "box"}, {"name": "b", "device": "box"}, {"name": "s", "device": "sw"}],
 "links": [{"name": "eth", "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": 8}}],
 "edges": [
 {"ep1": {"instance": "a", "component": "nic"}, "ep2": {"instance": "s", "component": "port[0:2]"}, "link": "eth", "many2many": true},
 {"ep1": {"instance": "b", "component": "nic[0]"}, "ep2": {"instance": "s[0]", "component": "port[4:8:3]"}, "link": "eth", "scheme": "many2many"}]}})";
  const Machine machine = infra_machine(text, 2, ", latency: 3us");
  CHECK(check_routes(machine, true) == "");
  for (const Link& link : machine.links)
    if (link.name.starts_with("n") && link.name.find("-s.0") != std::string::npos)
      CHECK(link.bandwidth_Bps == 2e9);
  CHECK(
      infra_error(text, 2) ==
      "infra.yaml:5:12: links: 'eth' tells no latency; give cluster.fabric.latency for links that tell none");
}

TEST_CASE("infragraph: wrong files are told at their place") {
  CHECK(infra_error(clos) == "no error");
  CHECK(infra_error(swapped(clos, "instance: \"leaf[0]\"", "instance: \"leav[0]\""))
            .find("there is no 'leav' (did you mean 'leaf'?)") != std::string::npos);
  CHECK(infra_error(swapped(clos, "port[0:4]", "port[0:3]"))
            .find("one2one joins as many with as many: 4 with 3") != std::string::npos);
  CHECK(infra_error(swapped(clos, "port[0:4]", "port[14:18]")).find("with indices below 16") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "port[0:4]", "port[0:4")).find("expected NAME, NAME[i]") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "link: eth, scheme", "link: etth, scheme")).find("did you mean 'eth'?") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "choice: xpu", "choice: cpu")).find("which would be a host") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "host[2:4]", "host[2:3]")).find("as many with as many") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "link: up, scheme: many2many", "link: up, scheme: one2one"))
            .find("no way from") != std::string::npos);
  CHECK(infra_error(clos, 5).find("the cluster has 5 hosts, dedicated servers included, and the file 4") !=
        std::string::npos);
  CHECK(infra_error(swapped(clos, "choice: us, us: 1", "choice: us, ms: 1")).starts_with("infra.yaml:19:"));
}
