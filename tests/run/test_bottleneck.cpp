// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/run/bottleneck.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Two k80 hosts and a parameter server ps0 on 1 GB/s NICs, and a step of 10 s in which nothing happens.
struct Case {
  Machine machine;
  ReplayResult replayed;

  Case() {
    DeviceType type;
    type.name = "k80";
    type.memory_bytes = 1000;
    machine.device_types = {type};
    machine.host_types = {{}};
    machine.hosts = {{"n0", 0, 0, 1}, {"n1", 0, 1, 1}, {"ps0", 0, 2, 0}};
    machine.devices = {{"n0", 0, 0, 1.0}, {"n1", 0, 1, 1.0}};
    for (std::uint32_t h = 0; h < 3; ++h)
      for (const Link::Direction way : {Link::Direction::up, Link::Direction::down})
        machine.links.push_back(
            {machine.hosts[h].name + (way == Link::Direction::up ? ".nic.up" : ".nic.down"), 1e9, 0, h,
             LinkKind::nic, way, h});
    machine.port_count = 3;
    replayed.step_time_s = 10;
    replayed.endpoints = {{0, 1, 2, 3, 4}, std::vector<EndpointUsage>(5)};
    replayed.links.resize(6);
    replayed.port_busy_s.resize(3);
  }
  /// Links that carry so many bytes at 1 GB/s each, in so many seconds.
  void busy(const std::vector<std::size_t>& links, double bytes, double busy_s) {
    for (const std::size_t link : links) {
      replayed.links[link].bytes = bytes;
      replayed.links[link].busy_s = busy_s;
    }
  }
  Bottleneck found() const { return find_bottleneck(machine, replayed); }
  void check(const std::string& kind, const std::string& name, double utilization,
             const std::string& text) const {
    CHECK(found().kind == kind);
    CHECK(found().name == name);
    CHECK(found().utilization == approx(utilization).epsilon(1e-12));
    CHECK(found().text == text);
  }
};

}  // namespace

TEST_CASE("bottleneck: all devices compute") {
  Case c;
  c.replayed.endpoints.of_class()[0].compute_s = c.replayed.endpoints.of_class()[1].compute_s = 9.8;
  c.check("compute", "n0", 0.98, "all 2 k80 compute 98 % of the step");
}

TEST_CASE("bottleneck: one device computes longer") {
  Case c;
  c.replayed.endpoints.of_class()[0].compute_s = 5;
  c.replayed.endpoints.of_class()[1].compute_s = 9;
  c.check("compute", "n1", 0.9, "n1 (k80) computes 90 % of the step");
}

TEST_CASE("bottleneck: the parameter server's NIC, not those that wait for it") {
  Case c;
  c.replayed.endpoints.of_class()[0].compute_s = c.replayed.endpoints.of_class()[1].compute_s = 1;
  c.replayed.port_busy_s = {9.4, 9.4, 9.4};
  c.busy({0, 1, 2, 3}, 2.35e9, 4.7);
  c.busy({4, 5}, 4.7e9, 4.7);
  c.check("link", "ps0.nic", 0.94, "parameter server ps0's NIC is busy 94 % of the step");
}

TEST_CASE("bottleneck: equal ports are counted") {
  Case c;
  c.replayed.port_busy_s = {7, 7, 0};
  c.busy({0, 1, 2, 3}, 7e9, 7);
  c.check("link", "n0.nic", 0.7, "n0's NIC (and 1 like it) is busy 70 % of the step");
}

TEST_CASE("bottleneck: a link of the network by its name, and one that is both ways at once as a medium") {
  Case c;
  c.machine.links.push_back({"spine.up", 1e9, 0, 3, LinkKind::network, Link::Direction::up, Link::no_host});
  c.machine.links.push_back({"air", 1e9, 0, 4, LinkKind::network, Link::Direction::both, Link::no_host});
  c.machine.port_count = 5;
  c.replayed.links.resize(8);
  c.replayed.port_busy_s.resize(5);
  c.busy({6}, 9e9, 9);
  c.replayed.port_busy_s[3] = 9;
  c.check("link", "spine", 0.9, "link spine is busy 90 % of the step");
  c.busy({7}, 9.5e9, 9.5);
  c.replayed.port_busy_s[4] = 9.5;
  c.check("link", "air", 0.95, "the medium 'air' is busy 95 % of the step");
}

TEST_CASE("bottleneck: messages whose bytes need less than half of the time wait for latency") {
  Case c;
  c.replayed.port_busy_s = {8, 8, 0};
  // 3 GB each way in the same 8 s: 3 s of bytes in either direction, although the sum is 6.
  c.busy({0, 1, 2, 3}, 3e9, 8);
  c.check("latency", "n0.nic", 0.5,
          "n0's NIC (and 1 like it) has messages under way 80 % of the step, 50 % of it for latency: their "
          "bytes need 30 %");
  c.busy({0, 1, 2, 3}, 4.1e9, 8);
  c.check("link", "n0.nic", 0.8, "n0's NIC (and 1 like it) is busy 80 % of the step");
}

TEST_CASE("bottleneck: pushes and then pulls that fill a NIC one way at a time are no latency") {
  Case c;
  c.replayed.port_busy_s = {0, 0, 9};
  c.busy({4, 5}, 4.5e9, 4.5);
  c.check("link", "ps0.nic", 0.9, "parameter server ps0's NIC is busy 90 % of the step");
}

TEST_CASE("bottleneck: a ring over many devices that sends little in many steps") {
  // 2 (64 - 1) steps of 50 us, and 1 kB over 1 GB/s in 64 parts: 6.3 ms of latency for 2 us of bytes.
  const lab::Experiment experiment(lab::custom_model(1, 250), lab::star(64, "1GB/s", "50us"),
                                   "{kind: data_parallel, sync: all_reduce}", 1);
  const Bottleneck found = find_bottleneck(experiment.machine(), experiment.run());
  CHECK(found.kind == "latency");
  CHECK(found.name == "n0.nic");
  CHECK(found.utilization == approx(6.3 / (6.3 + 0.3)).epsilon(0.001));
  // The same with 100 MB: 2 63/64 100 ms of bytes.
  const lab::Experiment full(lab::custom_model(1, 25'000'000), lab::star(64, "1GB/s", "50us"),
                             "{kind: data_parallel, sync: all_reduce}", 1);
  CHECK(find_bottleneck(full.machine(), full.run()).kind == "link");
}

TEST_CASE("bottleneck: a host that adds gradients") {
  Case c;
  c.replayed.endpoints.of_class()[4].compute_s = 6;
  c.check("host", "ps0", 0.6, "ps0's CPUs add gradients 60 % of the step");
}

TEST_CASE("bottleneck: devices that wait for their hosts to issue operations") {
  Case c;
  c.replayed.endpoints.of_class()[0].compute_s = c.replayed.endpoints.of_class()[1].compute_s = 9;
  c.replayed.endpoints.of_class()[0].issue_wait_s = c.replayed.endpoints.of_class()[1].issue_wait_s = 6;
  c.check("issue", "n0", 0.6,
          "hosts such as n0 issue operations more slowly than the k80 runs them: each of 2 devices waits for "
          "that 60 % of the step");
  c.replayed.endpoints.of_class()[1].compute_s = 4;
  c.check("issue", "n0", 0.6,
          "n0 issues operations more slowly than the k80 runs them: it waits for that 60 % of the step");
  // Two devices of one host.
  c.replayed.endpoints.of_class()[1] = c.replayed.endpoints.of_class()[0];
  c.machine.hosts = {{"n0", 0, 0, 2}, {"ps0", 0, 2, 0}};
  c.machine.devices[1].host = 0;
  c.check("issue", "n0", 0.6,
          "n0 issues operations more slowly than the k80 runs them: each of 2 devices waits for that 60 % of "
          "the step");
  // Operations run for just half of the time.
  c.replayed.endpoints.of_class()[0].issue_wait_s = 4.5;
  CHECK(c.found().kind == "compute");
}

TEST_CASE("bottleneck: memory that is not there comes before all") {
  Case c;
  c.replayed.endpoints.of_class()[0].compute_s = 10;
  c.replayed.endpoints.of_class()[1].peak_memory_bytes = 2048;
  c.check("memory", "n1", 2.048, "n1 needs 2.00 KiB and has 1000 B of memory");
}

TEST_CASE("bottleneck: a step without any work has none that is busy") {
  Case c;
  c.replayed.step_time_s = 0;
  CHECK(c.found().kind == "compute");
  CHECK(c.found().utilization == 0);
}
