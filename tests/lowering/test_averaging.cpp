// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "sim/lowering/averaging.h"
#include "sim/lowering/jitter.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr int averaged_layers = 3;
constexpr std::int64_t layer_parameters = 300'000;
constexpr double averaged_elements = static_cast<double>(averaged_layers * layer_parameters);
constexpr double averaged_bytes = 4 * averaged_elements;
constexpr double ideal_memory_Bps = 500e9,
                 compute_step_s = averaged_layers * 1.2e-3;  // of lab's ideal device

lab::Experiment replicas_with(const std::string& keys, int nodes, const std::string& sync = "all_reduce",
                              int devices = 1) {
  std::string cluster = lab::star(nodes, "1GB/s", "20us");
  if (devices > 1)
    cluster.replace(
        cluster.find("count: 1}], interconnect: {kind: none}"), 38,
        fmt::format("count: {}}}], interconnect: {{kind: pcie, bandwidth: 10GB/s, latency: 0us}}", devices));
  return {lab::custom_model(averaged_layers, layer_parameters), cluster,
          "{kind: data_parallel, sync: " + sync + keys + "}", 4};
}

double averaging_s(int nodes, double bytes) { return 2 * (nodes - 1) * (20e-6 + bytes / nodes / 1e9); }

}  // namespace

TEST_CASE("local SGD: of H steps one has the average, so a step has an Hth of its time and bytes") {
  for (const int every : {2, 3, 8})
    for (const int nodes : {2, 4}) {
      CAPTURE(every);
      CAPTURE(nodes);
      const lab::Experiment it = replicas_with(fmt::format(", sync_every: {}", every), nodes);
      const ReplayResult run = it.run();
      const double mean_s = 2 * averaged_bytes / ideal_memory_Bps;
      CHECK(run.comm_bytes == approx(2.0 * (nodes - 1) * averaged_bytes / every).epsilon(1e-12));
      CHECK(run.step_time_s ==
            approx(compute_step_s + (averaging_s(nodes, averaged_bytes) + mean_s) / every).epsilon(1e-9));
      CHECK(run.endpoints[0].compute_s == approx(compute_step_s + mean_s / every).epsilon(1e-9));
      CHECK(run.endpoints[0].exposed_comm_s ==
            approx(averaging_s(nodes, averaged_bytes) / every).epsilon(1e-9));
      CHECK(it.plan().images == 4 * nodes);
      CHECK(it.plan().steps == every);
      CHECK(it.run(false).step_time_s == approx(run.step_time_s).epsilon(1e-9));
      // Links are as busy as their bytes need.
      double busiest_s = 0;
      for (const LinkUsage& link : run.links) busiest_s = std::max(busiest_s, link.busy_s);
      CHECK(busiest_s <= run.step_time_s);
      CHECK(busiest_s >= 2.0 * (nodes - 1) / nodes * averaged_bytes / 1e9 / every * (1 - 1e-9));
    }
  CHECK(replicas_with(", sync_every: 1", 4).run().step_time_s == replicas_with("", 4).run().step_time_s);
  CHECK(replicas_with(", sync_every: 4", 1).run().step_time_s ==
        approx(replicas_with("", 1).run().step_time_s).epsilon(1e-12));
}

TEST_CASE("local SGD: algorithms, buckets and micro-batches change what they change in sums") {
  const auto bytes = [](const std::string& keys) { return replicas_with(keys, 4).run().comm_bytes; };
  for (const char* algorithm : {"ring", "tree", "halving_doubling", "hierarchical"})
    CHECK(bytes(fmt::format(", sync_every: 4, algorithm: {}", algorithm)) ==
          approx(bytes(fmt::format(", overlap: false, algorithm: {}", algorithm)) / 4).epsilon(1e-12));
  CHECK(replicas_with(", sync_every: 4, bucket: 1kB", 4).plan().communications.size() == averaged_layers);
  CHECK(replicas_with(", sync_every: 4", 4).plan().communications.size() == 1);
  CHECK(replicas_with(", sync_every: 4, micro_batches: 2", 4).run().step_time_s ==
        approx(replicas_with(", sync_every: 4", 4).run().step_time_s).epsilon(1e-9));
}

TEST_CASE("slow momentum: two copies of the parameters, and 24 bytes an element each period") {
  constexpr std::size_t optimizer = 2;
  const lab::Experiment plain = replicas_with(", sync_every: 4", 4),
                        slow = replicas_with(", sync_every: 4, slow_momentum: 0.7", 4);
  CHECK(slow.run().step_time_s - plain.run().step_time_s ==
        approx(6 * averaged_bytes / ideal_memory_Bps / 4).epsilon(1e-6));
  CHECK(slow.plan().roles[0].resident_bytes[optimizer] - plain.plan().roles[0].resident_bytes[optimizer] ==
        approx(2 * averaged_bytes));
  CHECK(slow.strategy().label() == "ring all-reduce every 4 steps, slow momentum 0.7");
}

TEST_CASE("averages: what a message carries is held until it has been taken back [law]") {
  int copies = 0;
  for (const char* keys : {"all_reduce, sync_every: 4", "all_reduce, sync_every: 2, bucket: 1MB", "gossip",
                           "gossip, overlap: false", "gossip, neighbours: exponential, bucket: 1MB"}) {
    CAPTURE(keys);
    const lab::Experiment it{lab::custom_model(averaged_layers, layer_parameters),
                             lab::star(4, "1GB/s", "20us, protocol: tcp"),
                             fmt::format("{{kind: data_parallel, sync: {}}}", keys), 4};
    for (const Role& role : it.plan().roles) {
      std::map<std::string, double> under_way;  // bytes of the messages that have been filled, by message
      std::map<double, int> held;               // such tensors of the workspace, by size
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops) {
          for (const MemoryDelta& delta : op.allocates)
            if (delta.memory_class == MemoryClass::workspace) ++held[delta.bytes];
          if (op.name.ends_with(" filled") || op.name.ends_with(" received")) {
            REQUIRE(op.allocates.size() == 1);
            under_way[op.name] = op.allocates.front().bytes;
            ++copies;
          }
          if (op.name.ends_with(" taken"))
            for (const char* what : {" filled", " received"})
              under_way.erase(op.name.substr(0, op.name.size() - 6) + what);
          for (const MemoryDelta& delta : op.frees)
            if (delta.memory_class == MemoryClass::workspace) --held[delta.bytes];
          std::map<double, int> wanted;
          for (const auto& [message, bytes] : under_way) ++wanted[bytes];
          for (const auto& [bytes, count] : wanted) CHECK(held[bytes] >= count);
        }
      CHECK(under_way.empty());
    }
  }
  CHECK(copies >= 8);
}

TEST_CASE("hierarchical local SGD: sums inside hosts in every step, averages among all every H") {
  // 3 hosts of 2 devices: in a host a ring of two, 2 S a step; among all six 2 x 5 S in one of H steps.
  for (const int every : {2, 5}) {
    const lab::Experiment it = replicas_with(
        fmt::format(", sync_every: {}, sum_in_hosts: true, overlap: false", every), 3, "all_reduce", 2);
    CHECK(it.run().comm_bytes == approx(3 * 2 * averaged_bytes + 10 * averaged_bytes / every).epsilon(1e-12));
    CHECK(it.run(false).step_time_s == approx(it.run().step_time_s).epsilon(1e-9));
  }
}

TEST_CASE("gossip: a device sends its parameters to each neighbour, while it computes or after it") {
  struct Graph {
    const char* name;
    int nodes;
    double sent;  ///< messages of a device in a step
  };
  for (const Graph& graph : {Graph{"ring", 2, 1}, Graph{"ring", 5, 2}, Graph{"exponential", 8, 3},
                             Graph{"exponential", 6, 3}, Graph{"one_peer", 8, 1}, Graph{"one_peer", 6, 1}}) {
    CAPTURE(graph.name);
    CAPTURE(graph.nodes);
    const std::string keys = fmt::format(", neighbours: {}", graph.name);
    const ReplayResult overlapped = replicas_with(keys, graph.nodes, "gossip").run();
    const ReplayResult after = replicas_with(keys + ", overlap: false", graph.nodes, "gossip").run();
    const double message_s = 20e-6 + graph.sent * averaged_bytes / 1e9;  // they share the NIC
    const double mean_s = (graph.sent + 2) * averaged_bytes / ideal_memory_Bps;
    for (const ReplayResult* run : {&overlapped, &after})
      CHECK(run->comm_bytes == approx(graph.nodes * graph.sent * averaged_bytes).epsilon(1e-12));
    CHECK(after.step_time_s == approx(compute_step_s + message_s + mean_s).epsilon(1e-9));
    CHECK(overlapped.step_time_s == approx(std::max(compute_step_s, message_s) + mean_s).epsilon(1e-9));
    const auto most = [](const ReplayResult& run) { return run.endpoints[0].memory_at_peak[4]; };
    CHECK(most(overlapped) == approx(graph.sent * averaged_bytes));
    CHECK(replicas_with(keys, graph.nodes, "gossip").run(false).step_time_s ==
          approx(overlapped.step_time_s).epsilon(1e-9));
  }
  // Without a bucket all goes in one message, with a small one each layer in one of its own.
  CHECK(replicas_with("", 5, "gossip").plan().communications.size() * averaged_layers ==
        replicas_with(", bucket: 1kB", 5, "gossip").plan().communications.size());
  CHECK(replicas_with("", 1, "gossip").run().step_time_s ==
        approx(replicas_with("", 1).run().step_time_s).epsilon(1e-12));
}

TEST_CASE("gossip between hosts: a host sends once to each neighbour, and devices of a host stay the same") {
  for (const auto& [graph, hosts, sent] : {std::tuple{"ring", 5, 2}, std::tuple{"exponential", 8, 3},
                                           std::tuple{"one_peer", 8, 1}, std::tuple{"ring", 2, 1}})
    for (const int devices : {2, 3, 4}) {
      CAPTURE(graph);
      CAPTURE(devices);
      const lab::Experiment it =
          replicas_with(fmt::format(", neighbours: {}, sum_in_hosts: true, overlap: false", graph), hosts,
                        "gossip", devices);
      // In a host a ring sums 2 (d - 1) S, and what comes is passed on to d - 1 devices.
      CHECK(it.run().comm_bytes ==
            approx(hosts * (2.0 * (devices - 1) + sent + (devices - 1)) * averaged_bytes).epsilon(1e-12));
      CHECK(it.run(false).step_time_s == approx(it.run().step_time_s).epsilon(1e-9));
      CHECK(it.plan().steps == (std::string(graph) == "one_peer" ? 3 : 1));
    }
  // On one host there is nobody to meet.
  CHECK(replicas_with(", sum_in_hosts: true, overlap: false", 1, "gossip", 4).run().step_time_s ==
        approx(replicas_with(", overlap: false", 1, "all_reduce", 4).run().step_time_s).epsilon(1e-9));
}

TEST_CASE(
    "asynchronous gossip: nobody waits for another's step, and a round trip longer than a step decides") {
  // An average that a device asks for moves 16 bytes an element, one that it is asked for 12.
  const double means_s = (16 + 12) * averaged_elements / ideal_memory_Bps;
  for (const int nodes : {2, 4, 7}) {
    CAPTURE(nodes);
    const lab::Experiment it = replicas_with(", asynchronous: true", nodes, "gossip");
    const ReplayResult run = it.run();
    CHECK(it.plan().service() != nullptr);
    CHECK(run.comm_bytes == approx(nodes * 2 * averaged_bytes).epsilon(1e-12));  // there and back
    // 3.6 MB each way take 3.62 ms, a step 3.6 ms: what is computed varies a little, so that a device waits
    // at times.
    const double round_trip_s = 2 * (20e-6 + averaged_bytes / 1e9);
    CHECK(run.step_time_s >= (round_trip_s + means_s) * (1 - 1e-3));
    CHECK(run.step_time_s <= (round_trip_s + means_s) * 2);
  }
  // With a network that is fast enough a step is what it computes.
  const lab::Experiment fast(lab::custom_model(averaged_layers, layer_parameters),
                             lab::star(4, "100GB/s", "1us"),
                             "{kind: data_parallel, sync: gossip, asynchronous: true}", 4);
  CHECK(fast.run().step_time_s == approx(compute_step_s + means_s).epsilon(0.003));
  CHECK(fast.strategy().label() == "asynchronous gossip on a ring");
  // One device has nobody to meet.
  CHECK(replicas_with(", asynchronous: true", 1, "gossip").run().step_time_s ==
        approx(replicas_with("", 1).run().step_time_s).epsilon(1e-12));
}

TEST_CASE("asynchronous gossip: a device of half the speed slows only itself down") {
  const std::string devices =
      "{{name: lab, nodes: [{{name: fast, count: 3, server: quick}}, {{name: late, count: 1, server: "
      "slow}}], fabric: "
      "{{kind: switch, bandwidth: 100GB/s, latency: 1us}}, servers: {{quick: {{devices: [{{device: ideal, "
      "count: 1}}], "
      "interconnect: {{kind: none}}}}, slow: {{devices: [{{device: {}, count: 1}}], interconnect: {{kind: "
      "none}}}}}}, "
      "devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
      "1.0, "
      "launch_overhead: 0us}}, half: {{peak: {{fp32: 5TFLOPS}}, memory: 16GiB, memory_bandwidth: 250GB/s, "
      "efficiency: "
      "1.0, launch_overhead: 0us}}}}}}";
  const auto throughput = [&](const char* late, const std::string& keys) {
    const lab::Experiment it(lab::custom_model(averaged_layers, layer_parameters),
                             fmt::format(fmt::runtime(devices), late),
                             "{kind: data_parallel, sync: gossip" + keys + "}", 4);
    return it.plan().images / it.run().step_time_s;
  };
  // In step all four are as slow as the slowest; at their own pace three are not: (3 + 1 / 2) / 4.
  CHECK(throughput("half", "") / throughput("ideal", "") == approx(0.5).epsilon(0.01));
  CHECK(throughput("half", ", asynchronous: true") / throughput("ideal", ", asynchronous: true") ==
        approx(0.875).epsilon(0.01));
}

TEST_CASE("gossip: everyone has as many neighbours as others, and all are reached in log2 N steps [law]") {
  using With = Averaging::With;
  for (const With with : {With::ring, With::exponential, With::one_peer})
    for (const std::uint32_t devices : {1U, 2U, 3U, 7U, 8U, 33U}) {
      Averaging averaging;
      averaging.with = with;
      std::map<std::uint32_t, std::set<std::uint32_t>> from;  // who has something of whom
      for (std::uint32_t d = 0; d < devices; ++d) from[d] = {d};
      for (std::int64_t step = 0;
           step < averaging.period(lab::Experiment(lab::custom_model(1, 10),
                                                   lab::star(static_cast<int>(devices), "1GB/s", "1us"),
                                                   "{kind: data_parallel, sync: gossip}", 1)
                                       .machine());
           ++step) {
        std::map<std::uint32_t, int> sent, received;
        const auto before = from;
        for (const auto& [sender, receiver] : neighbours(with, devices, step)) {
          CHECK(sender != receiver);
          ++sent[sender], ++received[receiver];
          from[receiver].insert(before.at(sender).begin(), before.at(sender).end());
        }
        for (std::uint32_t d = 0; d < devices; ++d) {
          CHECK(sent[d] == received[d]);
          CHECK(sent[d] == sent[0]);
        }
      }
      if (with == With::one_peer)
        for (std::uint32_t d = 0; d < devices; ++d) CHECK(from[d].size() == devices);
    }
}

TEST_CASE("jitter: who waits for fewer, or less often, waits less") {
  constexpr double jitter = 0.05;
  const auto slowdown = [&](const std::string& keys, const std::string& sync = "all_reduce") {
    return replicas_with(keys, 16, sync).plan().roles[0].slowdown;
  };
  CHECK(slowdown("") == 1);  // inline clusters have no jitter
  const auto ring = [](std::uint32_t devices) {
    std::vector<EndpointId> group(devices);
    for (std::uint32_t d = 0; d < devices; ++d) group[d] = d;
    return Pattern{{group}, {Round{neighbours(Averaging::With::ring, devices, 0), {1.0}}}};
  };
  const double last_of_16 = expected_last_s({{1.0, 16}}, jitter),
               last_of_3 = expected_last_s({{1.0, 3}}, jitter);
  const Pattern sixteen = ring(16), two = ring(2);
  const double after = neighbours_wait({&sixteen}, false, jitter),
               before = neighbours_wait({&sixteen}, true, jitter);
  CHECK(after > 1 + 0.5 * (last_of_3 - 1));
  CHECK(after < last_of_16);
  CHECK(before < after);
  CHECK(before >= 1);
  // Nobody wins by waiting, though the mean of what is drawn lies below 1 for most of these.
  for (std::uint32_t devices = 2; devices <= 12; ++devices)
    for (const double little : {0.001, 0.01}) {
      CAPTURE(devices);
      CAPTURE(little);
      const Pattern few = ring(devices);
      CHECK(neighbours_wait({&few}, true, little) >= 1);
    }
  // Two devices wait for each other: the later of two, exactly.
  CHECK(neighbours_wait({&two}, false, jitter) == approx(expected_last_s({{1.0, 2}}, jitter)).epsilon(0.003));
}

TEST_CASE(
    "jitter: local SGD waits for the last once a period, and where hosts sum gradients, there in every "
    "step") {
  constexpr double jitter = 0.05;
  const auto slowdown = [&](const std::string& keys, int nodes) {
    const lab::Experiment experiment = replicas_with(keys, nodes, "all_reduce", 4);
    Machine machine = experiment.machine();
    machine.step_jitter = jitter;
    Plan plan = experiment.plan();
    wait_for_the_last(plan, machine, experiment.cost());
    return plan.roles[0].slowdown;
  };
  const auto last_of = [](std::size_t devices, double of_jitter) {
    return expected_last_s({{1.0, devices}}, of_jitter);
  };
  for (const int nodes : {1, 2, 4}) {
    CAPTURE(nodes);
    const auto hosts = static_cast<std::size_t>(nodes);
    CHECK(slowdown("", nodes) == approx(last_of(4 * hosts, jitter)));
    CHECK(slowdown(", sync_every: 4", nodes) == approx(last_of(4 * hosts, jitter / 2)));
    CHECK(slowdown(", sync_every: 4, sum_in_hosts: true", nodes) ==
          approx(last_of(4, jitter) * (nodes == 1 ? 1 : last_of(hosts, jitter / 2))));
  }
}

TEST_CASE("local SGD and gossip: what does not go together is refused in one line") {
  const auto error = [](const std::string& keys, const std::string& sync = "all_reduce") -> std::string {
    try {
      replicas_with(keys, 4, sync);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "no error";
  };
  CHECK(error(", sync_every: 4, zero: 1").find("strategy.zero: goes with sync_every: 1") !=
        std::string::npos);
  CHECK(error(", sync_every: 4, compression: fp16").find("strategy.compression: goes with sync_every: 1") !=
        std::string::npos);
  CHECK(error(", slow_momentum: 0.5").find("slow_momentum: goes with sync_every above 1") !=
        std::string::npos);
  CHECK(error(", sum_in_hosts: true").find("sum_in_hosts: goes with sync_every above 1") !=
        std::string::npos);
  CHECK(error(", sync_every: 4, slow_momentum: 1").find("must be below 1") != std::string::npos);
  CHECK(error(", sync_every: 0").find("out of range") != std::string::npos);
  CHECK(error(", sync_every: 1000000").find("operations are planned") != std::string::npos);
  CHECK(error(", neighbours: star", "gossip").find("unknown value 'star'; allowed: ring, exponential") !=
        std::string::npos);
  CHECK(error(", algorithm: ring", "gossip").find("algorithm: unknown key") != std::string::npos);
  CHECK(error(", asynchronous: true, neighbours: exponential", "gossip")
            .find("one neighbour at a time: use ring") != std::string::npos);
  CHECK(error(", asynchronous: true, overlap: false", "gossip").find("leave it out") != std::string::npos);
  CHECK(error(", asynchronous: true, sum_in_hosts: true", "gossip").find("goes with asynchronous: false") !=
        std::string::npos);
  CHECK(replicas_with(", neighbours: one_peer", 4, "gossip").strategy().label() ==
        "gossip with one peer a step");
}
