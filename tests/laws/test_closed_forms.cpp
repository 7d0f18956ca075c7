// SPDX-License-Identifier: MIT
// Replays against the closed forms of the literature, over random sizes. The seed of every random case is
// printed when it fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr double tolerance = 1e-6;

struct Case {
  unsigned seed;
  int nodes, layers;
  std::int64_t parameters, batch;
  double bandwidth_Bps, latency_s;

  double compute_s() const { return static_cast<double>(batch * layers) * 3e9 / 10e12; }
  double gradient_bytes() const { return 4.0 * layers * static_cast<double>(parameters); }
  std::string cluster() const {
    return lab::star(nodes, fmt::format("{}GB/s", bandwidth_Bps / 1e9), fmt::format("{}us", latency_s * 1e6));
  }
  ReplayResult run(const std::string& strategy) const {
    return lab::Experiment(lab::custom_model(layers, parameters), cluster(), strategy, batch).run();
  }
};

Case random_case(unsigned seed, std::vector<int> node_choices) {
  std::mt19937 random(seed);
  const auto pick = [&](auto low, auto high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  Case c;
  c.seed = seed;
  c.nodes =
      node_choices[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(node_choices.size()) - 1))];
  c.layers = static_cast<int>(pick(1, 5));
  c.parameters = pick(1, 20'000'000);
  c.batch = pick(1, 128);
  c.bandwidth_Bps = static_cast<double>(pick(1, 400)) * 1e8;
  c.latency_s = static_cast<double>(pick(0, 100)) * 1e-6;
  return c;
}

}  // namespace

TEST_CASE("one device: the step is the sum of the operations' times") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed, {1});
    CHECK(c.run("{kind: single}").step_time_s == approx(c.compute_s()).epsilon(1e-12));
    CHECK(c.run("{kind: data_parallel, sync: all_reduce}").step_time_s ==
          approx(c.compute_s()).epsilon(1e-12));
  }
}

TEST_CASE("ring without overlap: compute + 2(N-1) alpha + 2(N-1)/N S/B, in chunks and as fluid") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed, {2, 3, 4, 7, 8, 16, 33});
    const double n = c.nodes;
    const double expected =
        c.compute_s() + 2 * (n - 1) * c.latency_s + 2 * (n - 1) / n * c.gradient_bytes() / c.bandwidth_Bps;
    for (const std::string fidelity : {"chunk", "fluid", "auto"}) {
      CAPTURE(fidelity);
      const ReplayResult result = c.run(
          fmt::format("{{kind: data_parallel, sync: all_reduce, overlap: false, fidelity: {}}}", fidelity));
      CHECK(std::abs(result.step_time_s / expected - 1) < tolerance);
      CHECK(result.comm_bytes == approx(2 * (n - 1) * c.gradient_bytes()).epsilon(1e-12));
    }
  }
}

TEST_CASE(
    "tree without overlap: compute + 2 ceil(log2 N) (alpha + S/B), in chunks no more, and as much for powers "
    "of two") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed, {2, 3, 4, 5, 8, 13, 16, 32});
    const double rounds = 2 * std::ceil(std::log2(c.nodes));
    const double expected = c.compute_s() + rounds * (c.latency_s + c.gradient_bytes() / c.bandwidth_Bps);
    const std::string tree =
        "{kind: data_parallel, sync: all_reduce, algorithm: tree, overlap: false, fidelity: ";
    CHECK(std::abs(c.run(tree + "fluid}").step_time_s / expected - 1) < tolerance);
    // With other numbers of ranks some leaves have nothing to wait for and start their round early.
    const double in_chunks = c.run(tree + "chunk}").step_time_s;
    CHECK(in_chunks < expected * (1 + tolerance));
    if (std::has_single_bit(static_cast<unsigned>(c.nodes))) CHECK(in_chunks > expected * (1 - tolerance));
  }
}

TEST_CASE("halving and doubling without overlap: compute + 2 log2 N alpha + 2(N-1)/N S/B for powers of two") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed, {2, 4, 8, 16, 64});
    const double n = c.nodes;
    const double expected = c.compute_s() + 2 * std::log2(n) * c.latency_s +
                            2 * (n - 1) / n * c.gradient_bytes() / c.bandwidth_Bps;
    for (const std::string fidelity : {"chunk", "fluid"}) {
      CAPTURE(fidelity);
      const ReplayResult result =
          c.run(fmt::format("{{kind: data_parallel, sync: all_reduce, algorithm: halving_doubling, overlap: "
                            "false, fidelity: {}}}",
                            fidelity));
      CHECK(std::abs(result.step_time_s / expected - 1) < tolerance);
    }
  }
}

TEST_CASE("halving and doubling on N = 2^k + r ranks: 2 (alpha + S/B) more than on 2^k") {
  for (const int nodes : {3, 5, 6, 7, 12}) {
    CAPTURE(nodes);
    Case c = random_case(99, {nodes});
    const double power = std::exp2(std::floor(std::log2(nodes)));
    const double expected = c.compute_s() + 2 * std::log2(power) * c.latency_s +
                            2 * (power - 1) / power * c.gradient_bytes() / c.bandwidth_Bps +
                            2 * (c.latency_s + c.gradient_bytes() / c.bandwidth_Bps);
    const ReplayResult result =
        c.run("{kind: data_parallel, sync: all_reduce, algorithm: halving_doubling, overlap: false}");
    CHECK(std::abs(result.step_time_s / expected - 1) < tolerance);
  }
}

TEST_CASE(
    "S dedicated servers, even shards, no overlap: compute + 2 N W / (S B) + 2 alpha while the servers' NICs "
    "are the "
    "narrow ones") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed, {1, 2, 4, 8, 16});
    for (const int servers : {1, 2, 4}) {
      CAPTURE(servers);
      // A NIC on either side carries N W / S or W: the larger load sets the time.
      const double load = c.gradient_bytes() * std::max(1.0, static_cast<double>(c.nodes) / servers);
      const double expected = c.compute_s() + 2 * load / c.bandwidth_Bps + 2 * c.latency_s;
      const ReplayResult result = c.run(fmt::format(
          "{{kind: data_parallel, sync: parameter_server, servers: {}, sharding: even, overlap: false}}",
          servers));
      CHECK(std::abs(result.step_time_s / expected - 1) < tolerance);
      CHECK(result.comm_bytes == approx(2 * c.nodes * c.gradient_bytes()).epsilon(1e-12));
    }
  }
}

TEST_CASE("tensor sharding without overlap: the hottest server sets the time") {
  // 3 equal tensors of 4 MB on 2 servers: 2 on the first. 4 workers: push 4 * 8 MB into one NIC of 1 GB/s,
  // pull as much.
  const lab::Experiment experiment(
      lab::custom_model(3, 1'000'000), lab::star(4, "1GB/s", "10us"),
      "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: tensor, overlap: false}", 10);
  CHECK(experiment.run().step_time_s == approx(3 * 10 * 3e-4 + 2 * (4 * 8e6 / 1e9 + 10e-6)).epsilon(1e-9));
}

TEST_CASE("overlap: one bucket a layer, sent while backward goes on") {
  // 2 layers of 1.5 MB gradients on 2 nodes at 1 GB/s: a bucket takes 1.5 ms + 2 alpha. Batch 10: forward 1
  // ms a layer, data gradient 1 ms and weight gradient 1 ms a layer. Bucket 0 is ready at 2 + 2 = 4 ms,
  // bucket 1 at 6 ms: the first all-reduce is hidden, the second ends at 6 + 1.5 ms + 2 * 10 us.
  const lab::Experiment experiment(lab::custom_model(2, 375'000), lab::star(2, "1GB/s", "10us"),
                                   "{kind: data_parallel, sync: all_reduce, bucket: 1MB}", 10);
  const ReplayResult result = experiment.run();
  CHECK(result.step_time_s == approx(6e-3 + 1.5e-3 + 20e-6).epsilon(1e-9));
  CHECK(result.endpoints[0].compute_s == approx(6e-3).epsilon(1e-9));
  CHECK(result.endpoints[0].exposed_comm_s == approx(1.52e-3).epsilon(1e-9));
}

TEST_CASE(
    "step jitter: N synchronous devices take 1 + jitter E[max of N] times as long, one device does not") {
  // Expected maxima of standard normals, David & Nagaraja, Order Statistics: 0.5642 for 2, 1.0294 for
  // 4, 1.4236 for 8.
  for (const auto& [nodes, expected] : {std::pair{1, 0.0}, {2, 0.5642}, {4, 1.0294}, {8, 1.4236}}) {
    CAPTURE(nodes);
    std::string cluster = lab::star(nodes, "1000GB/s", "0us");
    cluster.insert(1, "step_jitter: 10%, ");
    const lab::Experiment experiment(lab::custom_model(1, 1), cluster,
                                     "{kind: data_parallel, sync: all_reduce}", 10);
    CHECK(experiment.run().step_time_s == approx(10 * 3e-4 * (1 + 0.1 * expected)).epsilon(1e-5));
  }
}

TEST_CASE(
    "double binary trees: the formula that their chunks are chosen by is an upper bound of what is "
    "simulated") {
  double greatest = 1;  // formula over replay
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Case it = random_case(seed, {2, 3, 4, 5, 7, 8, 12});
    CAPTURE(seed);
    const lab::Experiment experiment(lab::custom_model(it.layers, it.parameters), it.cluster(),
                                     "{kind: data_parallel, sync: all_reduce, algorithm: double_binary_tree, "
                                     "overlap: false, fidelity: chunk}",
                                     it.batch);
    const Pattern& pattern = experiment.plan().patterns.front();
    double rounds = 0;  // k + 2 L - 1
    for (const Round& round : pattern.rounds) rounds += round.repeat;
    const double chunks = std::round(0.5 / pattern.rounds[0].fraction(0));
    const double formula_s = rounds * (it.latency_s + 2 * it.gradient_bytes() / (chunks * it.bandwidth_Bps));
    const double replayed_s = experiment.run().step_time_s - it.compute_s();
    CHECK(replayed_s <= formula_s * (1 + tolerance));
    greatest = std::max(greatest, formula_s / replayed_s);
  }
  CHECK(greatest > 1.9);  // of two ranks each sends the chunks of one tree only
}

TEST_CASE("freezing a layer changes no device's bytes of weights, and leaves no gradients of it") {
  const auto states = [](const std::string& strategy, bool frozen) {
    const std::string model = fmt::format(
        "{{name: part, input: [4, 8, 8], loss: cross_entropy, layers: [{{name: a, kind: conv2d, "
        "out_channels: "
        "8, kernel: 3, padding: 1, frozen: {}}}, {{name: r, kind: relu}}, {{name: b, kind: conv2d, "
        "out_channels: 8, kernel: 3, padding: 1}}, {{name: flat, kind: flatten}}, {{name: fc, kind: linear, "
        "out_features: 10}}]}}",
        frozen);
    const lab::Experiment experiment =
        lab::Experiment::with_global_batch(model, lab::star(2, "10Gbps", "1us"), strategy, 8);
    StateBytes sum{};
    for (const Role& role : experiment.plan().roles)
      for (std::size_t c = 0; c < memory_class_count; ++c)
        sum[c] += role.resident_bytes[c] * static_cast<double>(role.members.size());
    return sum;
  };
  for (const char* strategy :
       {"{kind: data_parallel, sync: all_reduce}",
        "{kind: data_parallel, sync: parameter_server, servers: 1}",
        "{kind: pipeline, stages: 2, micro_batches: 2}", "{kind: hybrid, conv: filter, fc: channel}",
        "{kind: hybrid, conv: height, fc: replicated}", "{kind: filter_parallel}", "{kind: hypergraph}",
        "{kind: pardnn}"}) {
    CAPTURE(strategy);
    const StateBytes all = states(strategy, false), some = states(strategy, true);
    const auto weights = static_cast<std::size_t>(MemoryClass::weights);
    const auto gradients = static_cast<std::size_t>(MemoryClass::gradients);
    CHECK(all[weights] > 0);
    CHECK(some[weights] == approx(all[weights]));
    CHECK(some[gradients] < all[gradients]);
  }
}
