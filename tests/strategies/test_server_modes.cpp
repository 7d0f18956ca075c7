// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/input_error.h"
#include "strategies/strategy.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

std::string label(const std::string& more) {
  return read_strategy(parse_yaml("{kind: data_parallel, sync: parameter_server, " + more + "}", "f"))
      ->label();
}

lab::Experiment planned(const std::string& more, const std::string& cluster) {
  return {lab::custom_model(2, 1000), cluster, "{kind: data_parallel, sync: parameter_server, " + more + "}",
          4};
}

Plan plan_of(const std::string& more, const std::string& cluster) { return planned(more, cluster).plan(); }

}  // namespace

TEST_CASE("server modes: keys that do not go together are errors that say what would") {
  CHECK_THROWS_WITH_AS(label("staleness: 2"),
                       "f:1:58: strategy.staleness: goes with mode: ssp only; leave it out", InputError);
  CHECK_THROWS_WITH_AS(label("mode: async, staleness: 2"),
                       "f:1:71: strategy.staleness: goes with mode: ssp only; leave it out", InputError);
  CHECK_THROWS_WITH_AS(label("mode: ssp"), "f:1:1: strategy: key 'staleness' is missing", InputError);
  CHECK_THROWS_WITH_AS(label("mode: async, backup_workers: 1"),
                       "f:1:76: strategy.backup_workers: goes with mode: sync only; leave it out",
                       InputError);
  CHECK_THROWS_WITH_AS(label("mode: async, local_aggregation: true"),
                       "f:1:79: strategy.local_aggregation: devices of a node would wait for each other, "
                       "which mode: async spares "
                       "them; leave out one of the two",
                       InputError);
  CHECK_THROWS_WITH_AS(label("backup_workers: 1, pull: after_all"),
                       "f:1:72: strategy.pull: with backup_workers servers answer each message as it comes; "
                       "use pull: as_ready",
                       InputError);
  CHECK_THROWS_WITH_AS(label("backup_workers: 1, shares: speed"),
                       "f:1:74: strategy.shares: with backup_workers any of the workers may be left out, so "
                       "that all need equal shares",
                       InputError);
  CHECK_NOTHROW(label("mode: ssp, staleness: 0, local_aggregation: true"));
  CHECK_NOTHROW(label("backup_workers: 0, pull: after_all"));
}

TEST_CASE("server modes: all workers cannot be backup workers") {
  CHECK_THROWS_WITH_AS(
      plan_of("backup_workers: 3", lab::star(3, "1GB/s", "1us")),
      "strategy:1:63: strategy.backup_workers: with 3 backup workers of 3 no worker is left to wait "
      "for; at most 2 here",
      InputError);
  CHECK_NOTHROW(plan_of("backup_workers: 2", lab::star(3, "1GB/s", "1us")));
}

TEST_CASE("server modes: labels tell them apart") {
  CHECK(label("mode: sync") == "1 dedicated parameter server");
  CHECK(label("mode: async") == "1 dedicated parameter server, asynchronous");
  CHECK(label("servers: 2, mode: ssp, staleness: 3") == "2 dedicated parameter servers, staleness 3");
  CHECK(label("backup_workers: 1") == "1 dedicated parameter server, 1 backup worker");
  CHECK(label("backup_workers: 2, overlap: false") ==
        "1 dedicated parameter server, 2 backup workers, no overlap");
}

TEST_CASE("server modes: workers set out in 8 groups over the time of a step, the faster ones of ssp ahead") {
  const std::string two_speeds =
      "{name: lab, nodes: [{name: n, count: 9, server: box}, {name: slow, count: 1, server: box, speed: "
      "0.5}], fabric: "
      "{kind: switch, bandwidth: 1GB/s, latency: 1us}, " +
      lab::ideal_servers() + "}";
  const Plan plan = plan_of("mode: ssp, staleness: 3", two_speeds);
  REQUIRE(plan.service() != nullptr);
  REQUIRE(plan.service()->clients.size() == 10);
  // 2 layers x 4 images x 0.3 ms = 2.4 ms.
  for (std::uint32_t w = 0; w < 9; ++w) {
    CHECK(plan.service()->clients[w].start_s == approx(2.4e-3 * (w % 8) / 8).epsilon(1e-12));
    CHECK(plan.service()->clients[w].head_start == 3);
  }
  CHECK(plan.service()->clients[9].start_s == approx(4.8e-3 / 8).epsilon(1e-12));
  CHECK(plan.service()->clients[9].head_start == 0);
  CHECK(plan.service()->max_lead == 3);
  CHECK(plan_of("mode: ssp, staleness: 0", two_speeds).service() == nullptr);
  CHECK(planned("mode: ssp, staleness: 0", two_speeds).report().staleness == Staleness{});
  CHECK_FALSE(planned("backup_workers: 4", two_speeds).report().staleness);
  CHECK(plan_of("backup_workers: 0", two_speeds).service() == nullptr);
  CHECK(plan_of("backup_workers: 4", two_speeds).service()->quorum == 6);
}

TEST_CASE("server modes: with backup workers every device draws its own compute times") {
  const auto machine = [](int devices, const std::string& jitter) {
    std::string cluster = lab::star(devices, "1GB/s", "1us");
    return cluster.insert(1, "step_jitter: " + jitter + ", ");
  };
  const Plan plan = plan_of("backup_workers: 2", machine(300, "5%"));
  REQUIRE(plan.service() != nullptr);
  CHECK(plan.service()->step_jitter == 0.05);
  CHECK(plan.service()->compute_spread == 0);
  for (std::uint32_t w = 0; w < 300; ++w) CHECK(plan.service()->clients[w].sequence == w % 256);
  for (const Role& role : plan.roles) CHECK(role.slowdown == 1);
  // Without jitter all are equal, and one stands for all of them.
  const Plan sure = plan_of("backup_workers: 2", machine(10, "0%"));
  CHECK_FALSE(sure.service()->is_random());
  for (const Service::Client& client : sure.service()->clients) CHECK(client.sequence == 0);
  // Asynchronous ones too, of a server that takes messages in order.
  const Plan async = plan_of("mode: async", machine(10, "5%"));
  CHECK(async.service()->step_jitter == 0.05);
  CHECK(async.service()->compute_spread == 0);
  CHECK(async.service()->drifts);
}
