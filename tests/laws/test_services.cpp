// SPDX-License-Identifier: MIT
// Parameter servers that do not wait for all: closed forms, order of the modes, folding, bounds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <random>

#include "sim/lowering/jitter.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr const char* fast = "1000000GB/s";  // 12 MB in 12 ns: no time beside milliseconds
constexpr double image_s = 3e-4;             // 3 GFLOP at 10 TFLOPS

std::string nodes_of_speeds(const std::vector<double>& speeds, const std::string& bandwidth,
                            const std::string& more = "", const std::string& host = "") {
  std::string nodes;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    nodes += fmt::format("{{name: n{}x, count: 1, server: box, speed: {}}}, ", i, speeds[i]);
  std::string text =
      fmt::format("{{name: lab, nodes: [{}], fabric: {{kind: switch, bandwidth: {}, latency: 0us}}, {}{}}}",
                  nodes, bandwidth, lab::ideal_servers(), more);
  if (!host.empty()) text.insert(text.find("interconnect"), host + ", ");
  return text;
}

std::string servers(const std::string& mode, const std::string& more = "") {
  return fmt::format("{{kind: data_parallel, sync: parameter_server, {}{}}}", mode, more);
}

lab::Experiment experiment(const std::string& cluster, const std::string& strategy, std::int64_t batch = 10,
                           int layers = 2, std::int64_t parameters = 250'000) {
  return {lab::custom_model(layers, parameters), cluster, strategy, batch};
}

double step_s(const std::string& cluster, const std::string& strategy) {
  return experiment(cluster, strategy).run().step_time_s;
}

const std::vector<double> uneven{1, 0.8, 0.5, 0.4};

/// Mean time between updates of workers with backup workers, event by event: each computes a normal multiple
/// of its mean, pushes, and begins anew `way_s` after it was answered; a gradient that was made from older
/// parameters is answered at once and counts for nothing.
double backup_workers_s(const std::vector<double>& mean_s, double jitter, std::size_t backup, double way_s,
                        unsigned seed) {
  struct Push {
    double at_s;
    std::size_t worker;
    int made_from;
    bool operator>(const Push& other) const { return at_s > other.at_s; }
  };
  constexpr int updates = 60'000, warm_up = 100;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::priority_queue<Push, std::vector<Push>, std::greater<>> pushes;
  int version = 0;
  const auto begin = [&](std::size_t worker, double now_s) {
    pushes.push(
        {now_s + way_s + mean_s[worker] * std::max(0.0, 1 + jitter * normal(random)), worker, version});
  };
  for (std::size_t w = 0; w < mean_s.size(); ++w) begin(w, 0);
  std::vector<std::size_t> waiting;
  double from_s = 0;
  while (true) {
    const Push push = pushes.top();
    pushes.pop();
    const double now_s = push.at_s + way_s;
    if (push.made_from == version) {
      waiting.push_back(push.worker);
      if (waiting.size() < mean_s.size() - backup) continue;
      if (++version == warm_up) from_s = now_s;
      if (version == warm_up + updates) return (now_s - from_s) / updates;
      for (const std::size_t worker : waiting) begin(worker, now_s);
      waiting.clear();
    } else {
      begin(push.worker, now_s);
    }
  }
}

}  // namespace

TEST_CASE("async on a fast network: throughput is the sum of the workers' own rates") {
  const lab::Experiment it = experiment(nodes_of_speeds(uneven, fast), servers("mode: async"));
  const ReplayResult result = it.run();
  // 10 images take 2 layers x 10 x 0.3 ms = 6 ms at speed 1: 4 steps of a worker in 24 / (1 + .8 + .5 + .4)
  // ms.
  CHECK(result.step_time_s == approx(4 * 6e-3 / 2.7).epsilon(1e-4));
  CHECK(it.plan().images == 40);
  for (EndpointId d = 0; d < 4; ++d) {
    CHECK(result.endpoints[d].compute_s == approx(result.step_time_s).epsilon(1e-4));
    // 2 MB a push, as often as its speed allows.
    CHECK(result.endpoints[d].sent_bytes == approx(2e6 * uneven[d] * 4 / 2.7).epsilon(1e-4));
  }
  CHECK(result.comm_bytes == approx(2 * 4 * 2e6).epsilon(1e-9));
}

TEST_CASE("async with shares by speed: the step is that of any worker, and so is sync's") {
  // Of 30 images 20 and 10: two layers of 0.3 ms each take 12 ms on either.
  for (const char* mode : {"mode: sync", "mode: async"})
    CHECK(
        experiment(nodes_of_speeds({1, 0.5}, fast), servers(mode, ", shares: speed"), 15).run().step_time_s ==
        approx(12e-3).epsilon(1e-6));
}

TEST_CASE("async: equal workers miss the updates of all others, one each") {
  for (const int workers : {1, 2, 5, 8}) {
    CAPTURE(workers);
    const ReplayResult result = experiment(lab::star(workers, fast, "0us"), servers("mode: async")).run();
    REQUIRE(result.staleness.has_value());
    // Compute times vary by up to half: a worker may make up to three steps in one of another's.
    CHECK(std::abs(result.staleness->mean - (workers - 1)) <= 0.02 * (workers - 1));
    CHECK(result.staleness->max >= workers - 1);
    CHECK(result.staleness->max <= 4 * (workers - 1));
  }
  // Up to 64 each for itself.
  const ReplayResult many = experiment(lab::star(16, fast, "0us"), servers("mode: async")).run();
  CHECK(std::abs(many.staleness->mean - 15) <= 0.3);
  CHECK(many.timelines.size() == 16 + 1);
}

TEST_CASE("async on a slow network: the server's NIC sets the pace, and no worker waits for a slower one") {
  // 8 workers push and pull 2 MB each a step over the server's 100 MB/s, both directions at once: 160 ms,
  // against 6 ms of compute.
  const std::string cluster = lab::star(8, "100MB/s", "0us");
  const double async_s = step_s(cluster, servers("mode: async", ", overlap: false"));
  CHECK(async_s >= 0.16 * (1 - 1e-9));
  CHECK(async_s < 0.326);
  // In step all push, then all pull.
  CHECK(step_s(cluster, servers("mode: sync", ", overlap: false")) == approx(0.326).epsilon(1e-6));
}

TEST_CASE("async: a step is never shorter than its bytes need on the busiest link") {
  std::mt19937 random(155);
  for (int i = 0; i < 24; ++i) {
    std::vector<double> speeds;
    for (std::size_t n = 5 + random() % 4; n > 0; --n)
      speeds.push_back(0.6 + 0.1 * static_cast<double>(random() % 6));
    CAPTURE(speeds);
    // 6 MB each way on one medium, which is busy all the time.
    const double bandwidth_GBps = 0.1 * static_cast<double>(1 + random() % 5);
    std::string cluster = nodes_of_speeds(speeds, fmt::format("{:.1f}GB/s", bandwidth_GBps));
    cluster.replace(cluster.find("switch"), 6, "shared");
    const lab::Experiment it =
        experiment(cluster, servers("mode: async, servers: 3, sharding: even"), 10, 3, 500'000);
    const ReplayResult result = it.run();
    double needed_s = 0;
    for (std::size_t l = 0; l < result.links.size(); ++l)
      needed_s = std::max(needed_s, result.links[l].bytes / it.machine().links[l].bandwidth_Bps);
    CHECK(needed_s <= result.step_time_s * (1 + 1e-12));
  }
}

TEST_CASE("ssp: staleness 0 is sync, a bound never reached is async, and a looser bound is never slower") {
  for (const char* bandwidth : {fast, "1GB/s"}) {
    CAPTURE(bandwidth);
    const std::string cluster = nodes_of_speeds(uneven, bandwidth, ", step_jitter: 5%");
    const double sync_s = step_s(cluster, servers("mode: sync"));
    const double async_s = step_s(cluster, servers("mode: async"));
    CHECK(async_s < sync_s);
    double last_s = step_s(cluster, servers("mode: ssp, staleness: 0"));
    CHECK(last_s == approx(sync_s).epsilon(1e-12));
    for (const int bound : {1, 2, 4, 8}) {
      CAPTURE(bound);
      const double now_s = step_s(cluster, servers(fmt::format("mode: ssp, staleness: {}", bound)));
      CHECK(now_s <= last_s * (1 + 1e-9));
      CHECK(now_s >= async_s);
      last_s = now_s;
    }
  }
  // Workers that are equal never come to the bound.
  const std::string equal = lab::star(4, fast, "0us");
  CHECK(step_s(equal, servers("mode: ssp, staleness: 1")) ==
        approx(step_s(equal, servers("mode: async"))).epsilon(1e-9));
}

TEST_CASE("ssp on a fast network: in the long run everybody keeps the slowest one's pace, with less jitter") {
  const double slowest_s = 6e-3 / 0.4;
  for (const int bound : {1, 3, 50}) {
    CAPTURE(bound);
    const ReplayResult result =
        experiment(nodes_of_speeds(uneven, fast), servers(fmt::format("mode: ssp, staleness: {}", bound)))
            .run();
    CHECK(result.step_time_s == approx(slowest_s).epsilon(1e-4));
    CHECK(result.staleness->max_lead == bound);
    // All get their answers when the slowest has pushed; the next pushes come in the order of the speeds, and
    // miss those before them: 0, 1, 2 and 3 updates.
    CHECK(result.staleness->mean == approx(1.5).epsilon(1e-6));
    CHECK(result.staleness->max <= 3 * (2 * bound + 1));
  }
  // Jitter of 5 %: the slowest decides every step here; of four equal ones 1 + 0.05 E[max of 4] / sqrt(bound
  // + 1).
  const std::string ssp = servers("mode: ssp, staleness: 3"), jitter = ", step_jitter: 5%";
  CHECK(step_s(nodes_of_speeds(uneven, fast, jitter), ssp) / slowest_s == approx(1).epsilon(1e-4));
  CHECK(step_s(nodes_of_speeds({1, 1, 1, 1}, fast, jitter), ssp) / 6e-3 ==
        approx(1 + 0.05 * 1.02938 / 2).epsilon(1e-4));
}

TEST_CASE("backup workers: the step is that of the slowest one waited for, and its images are theirs") {
  const std::string cluster = nodes_of_speeds(uneven, fast);
  const std::vector<double> expected_s{6e-3 / 0.4, 6e-3 / 0.5, 6e-3 / 0.8, 6e-3};
  for (int backup = 0; backup < 4; ++backup) {
    CAPTURE(backup);
    const lab::Experiment it = experiment(cluster, servers(fmt::format("backup_workers: {}", backup)));
    CHECK(it.run().step_time_s == approx(expected_s[backup]).epsilon(1e-4));
    CHECK(it.plan().images == 10 * (4 - backup));
  }
  // Equal workers with jitter: the maximum of 4 is 1.02938 standard deviations late.
  const std::string jittery = nodes_of_speeds({1, 1, 1, 1}, fast, ", step_jitter: 5%");
  CHECK(step_s(jittery, servers("backup_workers: 0")) == approx(6e-3 * (1 + 0.05 * 1.02938)).epsilon(1e-4));
}

TEST_CASE("backup workers with jitter: who is late begins later, and is late again") {
  // A late worker's gradient is dropped when it comes, and only then it gets the new parameters: the mean is
  // beyond that of the last one waited for of N that begin together, 1 - 0.5642 jitter for one of two.
  const double two_s = backup_workers_s({30e-3, 30e-3}, 0.1, 1, 0, 1);
  CHECK(two_s > 30e-3 * (1 - 0.05642) * 1.04);
  std::mt19937 random(20261123);
  for (int i = 0; i < 24; ++i) {
    const std::size_t workers = 2 + random() % (i % 3 == 0 ? 15 : 4), backup = 1 + random() % (workers - 1);
    const double jitter = 0.01 * static_cast<double>(1 + random() % 20);
    std::vector<double> speeds, mean_s;
    for (std::size_t w = 0; w < workers; ++w) {
      speeds.push_back(i % 2 == 0 ? 1 : 0.8 + 0.1 * static_cast<double>(random() % 3));
      mean_s.push_back(6e-3 / speeds.back());
    }
    const double way_s = 1e-6 * static_cast<double>(random() % 1000);
    CAPTURE(speeds);
    CAPTURE(backup);
    CAPTURE(jitter);
    CAPTURE(way_s);
    std::string cluster = nodes_of_speeds(speeds, fast, fmt::format(", step_jitter: {:.2f}", jitter));
    cluster.replace(cluster.find("latency: 0us"), 12, fmt::format("latency: {:.3f}us", way_s * 1e6));
    const lab::Experiment it = experiment(
        cluster, servers("sharding: even, overlap: false", fmt::format(", backup_workers: {}", backup)));
    const ReplayResult result = it.run();
    const double expected_s = backup_workers_s(mean_s, jitter, backup, way_s, static_cast<unsigned>(i));
    CHECK(std::abs(result.step_time_s / expected_s - 1) < 0.005);
    for (EndpointId d = 0; d < workers; ++d) {
      const EndpointUsage usage = result.endpoints[d];
      CHECK(usage.compute_s + usage.exposed_comm_s <= result.step_time_s * (1 + 1e-9));
      CHECK(usage.compute_s > 0);
    }
  }
}

TEST_CASE("services with jitter: parts add up to the step in every mode, on links that take time") {
  for (const char* mode :
       {"mode: async", "mode: ssp, staleness: 1", "backup_workers: 1", "backup_workers: 2"})
    for (const char* bandwidth : {fast, "2GB/s", "200MB/s"})
      for (const char* rest : {"", ", servers: 2, sharding: even", ", placement: colocated"}) {
        CAPTURE(mode);
        CAPTURE(bandwidth);
        CAPTURE(rest);
        const ReplayResult result =
            experiment(nodes_of_speeds({1, 1, 0.9, 0.8}, bandwidth, ", step_jitter: 20%"),
                       servers(mode, rest))
                .run();
        for (const EndpointUsage usage : result.endpoints) {
          CHECK(usage.compute_s + usage.exposed_comm_s <= result.step_time_s * (1 + 1e-9));
          CHECK(usage.end_s <= result.step_time_s);
        }
        for (const double busy_s : result.port_busy_s) CHECK(busy_s <= result.step_time_s * (1 + 1e-9));
      }
}

TEST_CASE("services with jitter: SimGrid's links give the same step, measurement by measurement") {
  for (const char* mode : {"mode: async", "mode: ssp, staleness: 1", "backup_workers: 1"}) {
    CAPTURE(mode);
    const lab::Experiment it =
        experiment(nodes_of_speeds({1, 1, 0.9}, "2GB/s", ", step_jitter: 20%"), servers(mode), 10, 1);
    const ReplayResult own = it.run(), reference = it.run(true, NetworkModel::simgrid);
    // A rounding error may decide who is first; what follows differs by no more than by chance.
    CHECK(reference.step_time_s == approx(own.step_time_s).epsilon(std::max(own.doubt, 1e-9)));
  }
}

TEST_CASE(
    "backup workers on a slow network: equal workers are as fast as without, gradients of all are sent") {
  const std::string cluster = lab::star(4, "1GB/s", "10us");
  const ReplayResult with = experiment(cluster, servers("backup_workers: 1")).run();
  const ReplayResult without = experiment(cluster, servers("mode: sync")).run();
  CHECK(with.step_time_s == approx(without.step_time_s).epsilon(1e-6));
  CHECK(with.comm_bytes == approx(without.comm_bytes).epsilon(1e-6));
}

TEST_CASE("async: servers add up all that is there at once at their CPUs' rate") {
  // One worker pushes 2 MB in one message after 6 ms: 2 ms at 1 GB/s, on a network without time.
  CHECK(step_s(nodes_of_speeds({1}, fast, "", "host: {reduce_bandwidth: 1GB/s}"),
               servers("mode: async, sharding: even, overlap: false")) == approx(8e-3).epsilon(1e-4));
  // 8 of them keep the CPUs busy: 16 ms for 8 pushes.
  const ReplayResult eight =
      experiment(nodes_of_speeds({1, 1, 1, 1, 1, 1, 1, 1}, fast, "", "host: {reduce_bandwidth: 1GB/s}"),
                 servers("mode: async, sharding: even, overlap: false"))
          .run();
  CHECK(eight.step_time_s == approx(16e-3).epsilon(0.02));
  CHECK(eight.endpoints[eight.endpoints.size() - 1].compute_s == approx(eight.step_time_s).epsilon(0.02));
}

TEST_CASE("one worker alone: every mode takes as long as sync") {
  const std::string cluster = lab::star(1, "1GB/s", "20us", ", speed: 0.7");
  const double sync_s = step_s(cluster, servers("mode: sync"));
  for (const char* mode : {"mode: async", "mode: ssp, staleness: 0", "mode: ssp, staleness: 2"})
    CHECK(step_s(cluster, servers(mode)) == approx(sync_s).epsilon(1e-9));
}

TEST_CASE("folded equals unfolded in every mode, placement and sharding, with equal and uneven workers") {
  const std::vector<std::string> clusters{
      lab::star(12, "1GB/s", "20us"), lab::star(3, "100MB/s", "5us"),
      nodes_of_speeds({1, 1, 0.8, 0.8, 0.5}, "1GB/s"),
      nodes_of_speeds({1, 1, 1, 1}, "1GB/s", "", "host: {reduce_bandwidth: 2GB/s}")};
  for (const std::string& cluster : clusters) {
    for (const char* mode : {"mode: async", "mode: ssp, staleness: 2", "backup_workers: 1"}) {
      for (const char* rest :
           {", servers: 1", ", servers: 3, sharding: even", ", servers: 3, placement: colocated",
            ", servers: 2, placement: colocated, sharding: even, overlap: false"}) {
        CAPTURE(cluster);
        CAPTURE(mode);
        CAPTURE(rest);
        const lab::Experiment it = experiment(cluster, servers(mode, rest), 3, 3, 700'000);
        const ReplayResult folded = it.run(true), whole = it.run(false);
        CHECK(folded.step_time_s == approx(whole.step_time_s).epsilon(1e-9));
        CHECK(folded.comm_bytes == approx(whole.comm_bytes).epsilon(1e-9));
        for (std::size_t e = 0; e < whole.endpoints.size(); ++e) {
          CAPTURE(e);
          CHECK(folded.endpoints[e].compute_s == approx(whole.endpoints[e].compute_s).epsilon(1e-6));
          CHECK(folded.endpoints[e].exposed_comm_s ==
                approx(whole.endpoints[e].exposed_comm_s).epsilon(1e-6));
          CHECK(folded.endpoints[e].sent_bytes == approx(whole.endpoints[e].sent_bytes).epsilon(1e-9));
        }
        CHECK(folded.staleness.has_value() == whole.staleness.has_value());
        if (folded.staleness) {
          CHECK(folded.staleness->mean == approx(whole.staleness->mean).epsilon(1e-6));
          CHECK(folded.staleness->max == approx(whole.staleness->max).epsilon(1e-6));
          CHECK(folded.staleness->max_lead == whole.staleness->max_lead);
        }
        for (std::size_t l = 0; l < whole.links.size(); ++l)
          CHECK(folded.links[l].busy_s == approx(whole.links[l].busy_s).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("a model without parameters: everybody computes, in every mode") {
  for (const char* mode : {"mode: async", "mode: ssp, staleness: 2"})
    CHECK(experiment(nodes_of_speeds({1, 0.5}, fast), servers(mode), 10, 2, 0).run().step_time_s ==
          approx(2 * 6e-3 / 1.5).epsilon(1e-9));
  CHECK(experiment(nodes_of_speeds({1, 0.5}, fast), servers("backup_workers: 1"), 10, 2, 0).plan().images ==
        20);
}
