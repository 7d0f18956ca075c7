// SPDX-License-Identifier: MIT
// Laws of data parallelism over random models and clusters: monotony, bounds, symmetry. Those that hold for
// every strategy are in test_every_strategy.cpp. The seed of a random case is printed when it fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/laws/laws.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr std::int64_t law_batch = 4;  ///< a device

double step_s(const std::string& model, const RandomCluster& cluster, const std::string& strategy) {
  return Experiment(model, cluster.text(), strategy, law_batch).run().step_time_s;
}

}  // namespace

TEST_CASE("more bandwidth or less latency never slows an all-reduce down") {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    const std::string algorithm =
        dice.one_of<std::string>({"ring", "tree", "halving_doubling", "hierarchical"});
    const std::string strategy = fmt::format(
        "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: 300kB, fidelity: fluid}}",
        algorithm);
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    CAPTURE(strategy);
    const double before_s = step_s(model, cluster, strategy);
    for (const double factor : {1.1, 3.0}) {
      RandomCluster better = cluster;
      better.bandwidth_Bps *= factor;
      CHECK(no_more(step_s(model, better, strategy), before_s));
      better = cluster;
      better.latency_s /= factor;
      CHECK(no_more(step_s(model, better, strategy), before_s));
    }
  }
}

TEST_CASE("more bandwidth or less latency never slows a ring in chunks down") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    const RandomCluster cluster =
        random_cluster(dice, dice.one_of<std::string>({"switch", "ring", "full_mesh"}));
    const std::string strategy =
        "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 300kB, fidelity: chunk}";
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    const double before_s = step_s(model, cluster, strategy);
    RandomCluster better = cluster;
    better.bandwidth_Bps *= 1.7;
    CHECK(no_more(step_s(model, better, strategy), before_s));
    better = cluster;
    better.latency_s /= 1.7;
    CHECK(no_more(step_s(model, better, strategy), before_s));
  }
}

TEST_CASE("recomputation costs the time of what runs again, and no memory but the image it begins with") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
    cluster.nodes = "[{name: n, count: 1, server: box}]";
    cluster.devices = 1;
    cluster.interconnect = "{kind: none}";
    CAPTURE(seed);
    CAPTURE(model);
    TrainingOptions options;
    const auto run = [&](Recomputation how) {
      options.recompute = how;
      return Experiment(model, cluster.text(), "{kind: single, micro_batches: 2}",
                        {law_batch, std::nullopt, {"test", 1, 1}}, options);
    };
    const ReplayResult plain = run(Recomputation::none).run();
    for (const Recomputation how : {Recomputation::blocks, Recomputation::sqrt}) {
      const Experiment experiment = run(how);
      double again_s = 0;
      for (const Operation& op : experiment.graph().operations)
        if (op.again)
          again_s +=
              2 * experiment.cost().time_s(op.work, law_batch / 2, experiment.machine().device_types[0]);
      const ReplayResult result = experiment.run();
      CHECK(same(result.step_time_s, plain.step_time_s + again_s));
      // A network that begins with pooling would not keep the image.
      CHECK(result.endpoints[0].peak_memory_bytes <=
            plain.endpoints[0].peak_memory_bytes + 4 * 3 * 16 * 16 * law_batch / 2);
    }
  }
}

TEST_CASE("slower devices never speed a step up, and sending while computing never slows it down") {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    const std::string strategy = fmt::format(
        "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: 300kB, fidelity: fluid, overlap: ",
        dice.one_of<std::string>({"ring", "tree", "halving_doubling", "hierarchical"}));
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    CAPTURE(strategy);
    const double with_overlap_s = step_s(model, cluster, strategy + "true}");
    CHECK(no_more(with_overlap_s, step_s(model, cluster, strategy + "false}")));
    RandomCluster slower = cluster;
    slower.peak_flops /= 2;
    slower.memory_Bps /= 2;
    const double slower_s = step_s(model, slower, strategy + "true}");
    CHECK(no_more(with_overlap_s, slower_s));
    CHECK(no_more(slower_s, 2 * with_overlap_s));  // nor by more than all of it
  }
}

TEST_CASE("a step is no shorter than its slowest device and its fullest link") {
  for (unsigned seed = 1; seed <= 105; ++seed) {
    Dice dice(seed + 1000);
    const std::string model = random_model(dice);
    const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    const std::string strategy =
        dice.coin() ? random_parameter_server(dice) : random_all_reduce(dice, "auto");
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    CAPTURE(strategy);
    const Experiment experiment(model, cluster.text(), strategy, law_batch);
    const ReplayResult result = experiment.run();
    const Machine& machine = experiment.machine();
    for (EndpointId d = 0; d < machine.devices.size(); ++d) {
      double compute_s = 0;
      const bool updates = strategy.find("all_reduce") != std::string::npos;
      for (const Operation& op : experiment.graph().operations)
        if (op.phase != Phase::update || updates)
          compute_s += operation_time_s(op.work, op.phase == Phase::update ? 1 : law_batch, Precision::fp32,
                                        machine.device_types[machine.devices[d].type]) /
                       machine.devices[d].speed;
      CHECK(same(result.endpoints[d].compute_s, compute_s));
      CHECK(no_more(compute_s, result.step_time_s));
    }
    const Traffic traffic = traffic_of(experiment.plan(), machine);
    for (std::size_t l = 0; l < machine.links.size(); ++l)
      CHECK(no_more(traffic.links[l] / machine.links[l].bandwidth_Bps, result.step_time_s));
  }
}

TEST_CASE(
    "on equal hosts of one device, chunks and fluid take the same time in rings, with and without overlap") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    RandomCluster cluster = random_cluster(dice, dice.one_of<std::string>({"switch", "ring", "full_mesh"}));
    cluster.nodes = fmt::format("[{{name: n, count: {}, server: box}}]", dice.between(2, 9));
    cluster.devices = 1;
    cluster.interconnect = "{kind: none}";
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    for (const std::string overlap : {"true", "false"}) {
      const std::string strategy =
          "{kind: data_parallel, sync: all_reduce, bucket: 200kB, overlap: " + overlap + ", fidelity: ";
      CHECK(same(step_s(model, cluster, strategy + "chunk}"), step_s(model, cluster, strategy + "fluid}")));
    }
  }
}

TEST_CASE("the order in which nodes are written changes names only") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    RandomCluster cluster = random_cluster(dice, "switch");
    const bool servers = dice.coin();
    // Dedicated servers have the first node's NIC, so that all must have the same.
    std::vector<std::string> entries{
        fmt::format("{{name: a, count: {}, server: box}}", dice.between(1, 3)),
        fmt::format("{{name: b, count: {}, server: box, speed: 0.5}}", dice.between(1, 2)),
        fmt::format("{{name: c, count: {}, server: box, speed: 1.3{}}}", dice.between(1, 2),
                    servers ? "" : ", nic_bandwidth: 0.7GB/s")};
    const std::string strategy =
        servers ? "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: even}"
                : "{kind: data_parallel, sync: all_reduce, bucket: 300kB, fidelity: fluid}";
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(strategy);
    std::map<std::string, EndpointUsage> first;
    std::sort(entries.begin(), entries.end());
    do {
      cluster.nodes = fmt::format("[{}, {}, {}]", entries[0], entries[1], entries[2]);
      CAPTURE(cluster.text());
      const Experiment experiment(model, cluster.text(), strategy, law_batch);
      const ReplayResult result = experiment.run();
      for (EndpointId d = 0; d < experiment.machine().devices.size(); ++d) {
        const std::string& name = experiment.machine().devices[d].name;
        CAPTURE(name);
        const auto [it, fresh] = first.emplace(name, result.endpoints[d]);
        CHECK(same(it->second.compute_s, result.endpoints[d].compute_s));
        CHECK(same(it->second.exposed_comm_s, result.endpoints[d].exposed_comm_s));
        CHECK(same(it->second.end_s, result.endpoints[d].end_s));
        CHECK(same(it->second.sent_bytes, result.endpoints[d].sent_bytes));
        CHECK(it->second.peak_memory_bytes == result.endpoints[d].peak_memory_bytes);
      }
    } while (std::next_permutation(entries.begin(), entries.end()));
  }
}

TEST_CASE("the first bucket of 1 MiB is DistributedDataParallel's, and nobody else's unless told") {
  // Eight layers of 800 kB: 1 MiB is reached with the second, 25 MiB never.
  constexpr double first_bytes = 2 * 800'000;
  const auto has_first_bucket = [](Framework framework, int devices, const std::string& more) {
    TrainingOptions options;
    options.framework = framework;
    options.optimizer = Optimizer::momentum;
    const lab::Experiment experiment = lab::Experiment::with_global_batch(
        lab::custom_model(8, 200'000), lab::star(devices, "1GB/s", "10us"),
        "{kind: data_parallel, sync: all_reduce" + more + "}", 8, options);
    const std::vector<Communication>& sums = experiment.plan().communications;
    return std::any_of(sums.begin(), sums.end(),
                       [&](const Communication& sum) { return sum.bytes == first_bytes; });
  };
  for (std::size_t f = 0; f < framework_count; ++f) {
    CAPTURE(framework_names[f]);
    const auto framework = static_cast<Framework>(f);
    const bool is_ddp = framework == Framework::pytorch || framework == Framework::pytorch1;
    for (const int devices : {2, 4}) {
      CHECK(has_first_bucket(framework, devices, "") == is_ddp);
      CHECK(has_first_bucket(framework, devices, ", zero: 1") == is_ddp);
      for (const char* other : {", bucket: 25MiB", ", overlap: false", ", zero: 2", ", zero: 3"}) {
        CAPTURE(other);
        CHECK_FALSE(has_first_bucket(framework, devices, other));
      }
      // Whatever the framework, where it is said: as a number, or as DistributedDataParallel's.
      CHECK(has_first_bucket(framework, devices, ", first_bucket: 1MiB"));
      CHECK(has_first_bucket(framework, devices, ", bucket: 50MiB, first_bucket: 1MiB"));
      CHECK(has_first_bucket(framework, devices, ", like: ddp"));
      CHECK_FALSE(has_first_bucket(framework, devices, ", like: ddp, bucket: 50MiB"));
      CHECK_FALSE(has_first_bucket(framework, devices, ", like: ddp, first_bucket: 25MiB"));
    }
    CHECK_FALSE(has_first_bucket(framework, 1, ""));
  }
}
