// SPDX-License-Identifier: MIT
// What sums of gradients and waiting for the last device take at least, against algorithms, plans and simulations.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/collectives/table.h"
#include "sim/planning/sum_time.h"
#include "sim/run/search/assess.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Of so many hosts of a server, as plain all-reduces use them.
Machine machine_of(const std::string& server, int hosts) {
  const ClusterSpec spec =
      read_cluster(parse_yaml(fmt::format("{{server: {}, nodes: {}}}", server, hosts), "cluster"));
  return build_machine(spec, 0, transport_over("nccl", spec.protocol().protocol));
}

/// How much of the bytes of a sum is sent between devices, and between hosts.
struct Sent {
  double between_devices = 0, between_hosts = 0;
};

Sent sent_by(const Pattern& pattern, const Machine& machine) {
  Sent sent;
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        sent.between_devices += fraction * round.repeat;
        if (machine.host_of(group[from]) != machine.host_of(group[to]))
          sent.between_hosts += fraction * round.repeat;
      });
  return sent;
}

}  // namespace

TEST_CASE("sum time: hosts of one device on a switch need 2 (n - 1) / n of the bytes over their bandwidth") {
  const double bandwidth_Bps = 10e9 / 8;
  const auto machine = [](int nodes) {
    const ClusterSpec spec =
        read_cluster(parse_yaml(lab::star(nodes, "10Gbps", "20us, protocol: ideal"), "cluster"));
    return build_machine(spec, 0, ideal_transport());
  };
  const Machine two = machine(2);
  const HostWays ways = ways_of(machine(1), &two);
  CHECK(ways.alone_s_per_byte == 0);
  CHECK(ways.between_s_per_byte == approx(1 / bandwidth_Bps));
  CHECK(ways.any_s_per_byte == approx(1 / bandwidth_Bps));
  for (const double n : {2.0, 3.0, 8.0, 100.0}) {
    CHECK(least_sum_s(ways, 1e8, n, n) == approx(2 * (n - 1) / n * 1e8 / bandwidth_Bps));
    CHECK(least_sum_s(ways, 0, n, n) == 0);
  }
  CHECK(least_sum_s(ways, 1e8, 1, 1) == 0);
}

TEST_CASE("sum time: no algorithm that adds on devices sends less than 2 (n - 1) times the bytes") {
  std::mt19937 random(7);
  int least_reached = 0;
  for (const std::string server : {"aws-p3.2xlarge", "aws-p3.16xlarge", "aws-g4dn.12xlarge"})
    for (const int hosts : {1, 2, 3, 8}) {
      const Machine machine = machine_of(server, hosts);
      std::vector<EndpointId> ranks;
      for (EndpointId d = 0; d < machine.devices.size(); ++d) ranks.push_back(d);
      if (ranks.size() < 2) continue;
      for (const CollectiveAlgorithm& row : collective_table()) {
        if (row.id == AllReduceAlgorithm::nccl) continue;
        CAPTURE(server);
        CAPTURE(hosts);
        CAPTURE(row.name);
        const double bytes = 1e4 * std::pow(10, random() % 5);
        const Sent sent =
            sent_by(all_reduce_pattern(row.id, ranks, machine, bytes, RingOrder::mesh), machine);
        const double of_devices = 2 * (static_cast<double>(ranks.size()) - 1);
        CHECK(sent.between_devices >= of_devices * (1 - 1e-12));
        CHECK(sent.between_hosts >= 2 * (hosts - 1) * (1 - 1e-12));
        least_reached += sent.between_devices <= of_devices * (1 + 1e-12);
      }
    }
  CHECK(least_reached > 20);
}

TEST_CASE("sum time: whose gradients are summed otherwise is told by the strategy") {
  const auto sums = [](const std::string& text) { return sums_on_devices(parse_yaml(text, "strategy")); };
  for (const char* plain :
       {"{kind: data_parallel, sync: all_reduce}", "{kind: data_parallel, sync: all_reduce, algorithm: auto}",
        "{kind: data_parallel, sync: all_reduce, algorithm: tree, overlap: false, micro_batches: 4, bucket: "
        "1MiB}"}) {
    CAPTURE(plain);
    CHECK(sums(plain));
  }
  for (const char* other : {"{kind: single}", "{kind: data_parallel, sync: parameter_server}",
                            "{kind: data_parallel, sync: all_reduce, algorithm: nccl}",
                            "{kind: data_parallel, sync: all_reduce, algorithm: {auto: [ring, nccl]}}",
                            "{kind: data_parallel, sync: all_reduce, zero: 1}",
                            "{kind: data_parallel, sync: all_reduce, compression: fp16}",
                            "{kind: data_parallel, sync: all_reduce, shares: speed}",
                            "{kind: data_parallel, sync: all_reduce, sync_every: 4}",
                            "{kind: pipeline, stages: 2, micro_batches: 2}"}) {
    CAPTURE(other);
    CHECK_FALSE(sums(other));
  }
}

TEST_CASE("sum time: the bound before a plan is not above that of the plan, nor that above its simulation") {
  const std::vector<std::string> servers{
      "aws-p2.8xlarge",
      "aws-p3.2xlarge",
      "aws-p3.16xlarge",
      "aws-g4dn.12xlarge",
      "gcp-a2-highgpu-8g",
      "{name: two-ideal, devices: [{device: t4, count: 2}], interconnect: {kind: pcie, bandwidth: 3GB/s, "
      "latency: 5us}, fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us, protocol: tcp}, price: "
      "1USD/h, host_power: 100W}"};
  const std::vector<std::string> buckets{"", ", bucket: 200kB", ", bucket: 1MiB", ", bucket: 10MiB"};
  const std::vector<std::string> algorithms{
      "ring", "tree", "halving_doubling", "hierarchical", "double_binary_tree", "auto"};
  int near = 0, by_sums = 0, as_planned = 0, all = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::string plan = fmt::format(
        "{{servers: [{}, {}], nodes: [1, 2, {}], batch_per_device: [{}], precision: [{}], strategies: "
        "[{{kind: "
        "data_parallel, sync: all_reduce, algorithm: {}{}{}{}}}]}}",
        servers[random() % 5], servers[5], 3 + random() % 6, 4 << random() % 7,
        random() % 2 ? "fp32" : "fp16", algorithms[random() % 6], random() % 3 ? "" : ", overlap: false",
        random() % 4 ? "" : ", micro_batches: 2", buckets[random() % 4]);
    CAPTURE(plan);
    const PlanSpec spec = plans::spec_of("{epochs: 30}", plan, "{dataset: {samples: 100000}}",
                                         random() % 3 ? plans::small_model() : "resnet18");
    const Trials trials = plans::trials_of(spec);
    for (const double bandwidth : {1.0, 0.2, 5.0}) {
      const Trials changed = trials.with_bandwidth(bandwidth);
      Preparer preparer;
      for (std::size_t s = 0; s < trials.space().setups.size(); ++s) {
        if (changed.trial(s).state != TrialState::open) continue;
        const Setup& setup = trials.setup(s);
        CAPTURE(bandwidth);
        CAPTURE(text_of(setup.order));
        const PreparedRun run =
            preparer.prepare(point_of(spec, setup), nullptr, {.bandwidth = bandwidth}, Detail::step);
        const double before_s = changed.trial(s).step_s, planned_s = assess(run).step_bound_s,
                     step_s = simulate(run, false).result.step_time_s;
        CHECK(before_s <= planned_s * (1 + 1e-9));
        CHECK(planned_s <= step_s * (1 + 1e-9));
        near += before_s > 0.9 * step_s, ++all;
        as_planned += setup.devices > 1 && before_s > 0.98 * planned_s;
        by_sums += before_s > 1.3 * trials.trial(0).step_s && before_s > 0.5 * planned_s;
      }
    }
  }
  CHECK(all > 100);
  CHECK(near > all / 4);
  CHECK(by_sums > 10);
  CHECK(as_planned > all / 6);  // of those of several devices, where buckets tell when gradients are there
}
