// SPDX-License-Identifier: MIT
// Folding must be exact: one simulated member a class gives what simulating everything gives. So must
// convoy's flow model: it gives what SimGrid's network model gives.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/laws/changed_plans.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

void check_same(const Machine& machine, const ReplayResult& one, const ReplayResult& other) {
  const auto same = [](double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max({1e-6, std::abs(a), std::abs(b)});
  };
  CAPTURE(one.step_time_s);
  CAPTURE(other.step_time_s);
  CHECK(same(one.step_time_s, other.step_time_s));
  CHECK(same(one.comm_bytes, other.comm_bytes));
  REQUIRE(one.endpoints.size() == other.endpoints.size());
  for (std::size_t e = 0; e < one.endpoints.size(); ++e) {
    CAPTURE(e);
    CHECK(same(one.endpoints[e].compute_s, other.endpoints[e].compute_s));
    CHECK(same(one.endpoints[e].exposed_comm_s, other.endpoints[e].exposed_comm_s));
    CHECK(same(one.endpoints[e].end_s, other.endpoints[e].end_s));
    CHECK(one.endpoints[e].peak_memory_bytes == other.endpoints[e].peak_memory_bytes);
  }
  for (std::size_t l = 0; l < one.links.size(); ++l) {
    CAPTURE(machine.links[l].name);
    CHECK(same(one.links[l].bytes, other.links[l].bytes));
    CHECK(same(one.links[l].busy_s, other.links[l].busy_s));
  }
  for (std::size_t p = 0; p < one.port_busy_s.size(); ++p)
    CHECK(same(one.port_busy_s[p], other.port_busy_s[p]));
}

void check_folded_equals_unfolded(const lab::Experiment& experiment) {
  const ReplayResult folded = experiment.run(true), whole = experiment.run(false);
  check_same(experiment.machine(), folded, whole);
  for (const bool fold : {true, false}) {
    CAPTURE(fold);
    check_same(experiment.machine(), folded, experiment.run(fold, NetworkModel::simgrid));
  }
  CHECK(folded.timelines.size() <= whole.timelines.size());
  CHECK(folded.simulated_flows <= whole.simulated_flows);
}

const std::vector<std::string> strategy_texts{
    "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 2MB}",
    "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 2MB, fidelity: chunk}",
    "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 2MB, fidelity: fluid}",
    "{kind: data_parallel, sync: all_reduce, algorithm: tree, fidelity: chunk}",
    "{kind: data_parallel, sync: all_reduce, algorithm: halving_doubling, fidelity: chunk}",
    "{kind: data_parallel, sync: all_reduce, algorithm: hierarchical, fidelity: chunk}",
    "{kind: data_parallel, sync: all_reduce, algorithm: hierarchical, fidelity: fluid}",
    "{kind: data_parallel, sync: all_reduce, zero: 1, bucket: 2MB}",
    "{kind: data_parallel, sync: all_reduce, zero: 2, bucket: 2MB, algorithm: hierarchical, fidelity: fluid}",
    "{kind: data_parallel, sync: all_reduce, zero: 3, bucket: 2MB, fidelity: chunk}",
    "{kind: data_parallel, sync: all_reduce, bucket: 2MB, compression: {kind: top_k, ratio: 0.1}}",
    "{kind: data_parallel, sync: parameter_server, servers: 1}",
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: tensor}",
    "{kind: data_parallel, sync: parameter_server, servers: 3, sharding: even}",
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: even, "
    "local_aggregation: true}",
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: even, bucket: "
    "1MB}",
    "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, sharding: even, bucket: "
    "1MB, local_aggregation: true}",
};

const std::vector<std::string> folding_fabrics{
    "{kind: switch, bandwidth: 1GB/s, latency: 20us}",
    "{kind: shared, bandwidth: 1GB/s, latency: 20us}",
    "{kind: ring, bandwidth: 1GB/s, latency: 20us}",
    "{kind: full_mesh, bandwidth: 1GB/s, latency: 20us}",
    "{kind: fat_tree, bandwidth: 1GB/s, latency: 20us, hosts_per_leaf: 2, oversubscription: 2}",
    "{kind: torus, bandwidth: 1GB/s, latency: 20us, dims: [3, 3]}",
};

std::string cluster(const std::string& fabric, int devices, const std::string& interconnect,
                    const std::string& nodes) {
  return fmt::format(
      "{{name: lab, nodes: {}, fabric: {}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], "
      "interconnect: {}}}}}, "
      "devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
      "1.0, "
      "launch_overhead: 0us}}}}}}",
      nodes, fabric, devices, interconnect);
}

}  // namespace

TEST_CASE("folded equals unfolded on every fabric, for every strategy, on equal one-device hosts") {
  for (const std::string& fabric : folding_fabrics) {
    for (const std::string& strategy : strategy_texts) {
      CAPTURE(fabric);
      CAPTURE(strategy);
      check_folded_equals_unfolded(lab::Experiment(
          lab::custom_model(3, 700'000),
          cluster(fabric, 1, "{kind: none}", "[{name: n, count: 4, server: box}]"), strategy, 3));
    }
  }
}

TEST_CASE("folded equals unfolded on hosts of two devices over PCIe") {
  for (const std::string& fabric : {folding_fabrics[0], folding_fabrics[4]}) {
    for (const std::string& strategy : strategy_texts) {
      CAPTURE(fabric);
      CAPTURE(strategy);
      check_folded_equals_unfolded(
          lab::Experiment(lab::custom_model(3, 700'000),
                          cluster(fabric, 2, "{kind: pcie, bandwidth: 3GB/s, latency: 5us}",
                                  "[{name: n, count: 4, server: box}]"),
                          strategy, 3));
    }
  }
}

TEST_CASE("folded equals unfolded with stragglers: one slow host, and a different speed on every device") {
  for (const std::string nodes :
       {"[{name: n, count: 3, server: box}, {name: slow, count: 1, server: box, speed: 0.8}]",
        "[{name: n, count: 4, server: box, speed_spread: 0.1}]",
        "[{name: n, count: 4, server: box, nic_spread: 0.1}]"}) {
    for (const std::string& strategy : strategy_texts) {
      CAPTURE(nodes);
      CAPTURE(strategy);
      check_folded_equals_unfolded(lab::Experiment(
          lab::custom_model(3, 700'000), cluster(folding_fabrics[0], 1, "{kind: none}", nodes), strategy, 3));
    }
  }
}

TEST_CASE(
    "folded equals unfolded for servers that answer by a rule, and for pipelines that are never flushed") {
  for (const std::string strategy :
       {"{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: even, mode: async, overlap: "
        "false}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, placement: colocated, mode: ssp, "
        "staleness: 1}",
        "{kind: data_parallel, sync: parameter_server, servers: 1, mode: ssp, staleness: 3}",
        "{kind: data_parallel, sync: parameter_server, servers: 1, backup_workers: 1}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 3, weights: stash}",
        "{kind: pipeline, stages: 4, micro_batches: 4, weights: double_buffered}"})
    for (const std::string nodes :
         {"[{name: n, count: 4, server: box}]", "[{name: n, count: 4, server: box, speed_spread: 0.1}]"}) {
      CAPTURE(nodes);
      CAPTURE(strategy);
      lab::Experiment experiment(lab::custom_model(4, 700'000),
                                 cluster(folding_fabrics[0], 1, "{kind: none}", nodes), strategy, 3);
      lab::shorten(experiment.plan());
      check_folded_equals_unfolded(experiment);
    }
}

TEST_CASE("equal devices on a switch are one simulated device and one flow, however many there are") {
  const lab::Experiment experiment(lab::custom_model(3, 700'000), lab::star(512, "1GB/s", "20us"),
                                   "{kind: data_parallel, sync: all_reduce}", 3);
  const ReplayResult result = experiment.run();
  CHECK(result.timelines.size() == 1);
  CHECK(result.simulated_flows == 1);
}

TEST_CASE("a straggler unfolds the devices, not the flows of a fluid ring on equal links") {
  const lab::Experiment experiment(
      lab::custom_model(3, 700'000),
      cluster(folding_fabrics[0], 1, "{kind: none}",
              "[{name: n, count: 63, server: box}, {name: slow, count: 1, server: box, speed: 0.5}]"),
      "{kind: data_parallel, sync: all_reduce, fidelity: fluid}", 3);
  const ReplayResult result = experiment.run();
  CHECK(result.timelines.size() == 2);
  CHECK(result.simulated_flows == 1);
}

TEST_CASE("replays of one process give the same bits in any order") {
  std::vector<lab::Experiment> experiments;
  for (const std::string& strategy : strategy_texts)
    experiments.emplace_back(
        lab::custom_model(3, 700'000),
        cluster(folding_fabrics[0], 1, "{kind: none}",
                "[{name: n, count: 4, server: box, speed_spread: 0.1, nic_spread: 0.1}]"),
        strategy, 3);
  std::vector<double> step_time_s;
  for (const lab::Experiment& experiment : experiments) step_time_s.push_back(experiment.run().step_time_s);
  for (std::size_t i = experiments.size(); i-- > 0;) {
    CAPTURE(strategy_texts[i]);
    experiments[i].run(true, NetworkModel::simgrid);
    CHECK(experiments[i].run().step_time_s == step_time_s[i]);
  }
}
