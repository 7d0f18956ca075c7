// SPDX-License-Identifier: MIT
// What monitoring reports is what the replay did: by hand, and over random experiments of every strategy.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "sim/run/repeated_curve.h"
#include "sim/run/watch_hosts.h"
#include "tests/laws/changed_plans.h"
#include "tests/laws/laws.h"
#include "tests/run/searches.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

PreparedRun prepared(const lab::Experiment& experiment, Plan plan) {
  return {std::make_shared<const TrainingGraph>(experiment.graph()),
          experiment.machine(),
          experiment.cost(),
          std::move(plan),
          experiment.report(),
          "strategy",
          std::nullopt};
}

/// One step of 3 ms of computing and 12 ms of a ring among 4 hosts: 6 rounds of 1 ms and 1 MB at 1 GB/s each.
const lab::Experiment& ring_of_four() {
  static const lab::Experiment experiment(
      custom_model(1, 1'000'000), star(4, "8Gbps", "1ms"),
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 1GB, overlap: false}", 10);
  return experiment;
}

}  // namespace

TEST_CASE("monitor: a curve that is repeated has the integral that adding up small steps finds") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  Dice dice(seed);
  for (int trial = 0; trial < 50; ++trial) {
    const double period_s = dice.between(1, 20) * 0.1;
    RepeatedCurve curve(period_s);
    std::vector<std::array<double, 3>> pieces;
    for (int i = dice.between(0, 5); i > 0; --i) {
      const double from = dice.between(-2, 25) * 0.1, until = from + dice.between(0, 10) * 0.1;
      pieces.push_back({from, until, static_cast<double>(dice.between(-3, 3))});
      curve.add(from, until, pieces.back()[2]);
    }
    const double everywhere = dice.between(0, 2);
    curve.add(everywhere);
    const int steps = dice.between(0, 70);
    double sum = 0;  // in steps of 0.1 s, by the value in the middle of each
    for (int i = 0; i < steps; ++i) {
      const double within = std::fmod((i + 0.5) * 0.1, period_s);
      for (const auto& [from, until, value] : pieces)
        if (within > from && within < until) sum += 0.1 * value;
      sum += 0.1 * everywhere;
    }
    CHECK(curve.integral(steps * 0.1) == doctest::Approx(sum).epsilon(1e-9));
  }
}

TEST_CASE("monitor: in each millisecond of a ring's steps hosts compute or send, as in the closed form") {
  const PreparedRun run = prepared(ring_of_four(), ring_of_four().plan());
  const ReplayResult replayed = ring_of_four().run();
  REQUIRE(replayed.step_time_s == doctest::Approx(15e-3).epsilon(1e-9));
  const std::vector<MonitoredHost> hosts = watch_hosts(run, replayed, {}, 1e-3, 30e-3);
  REQUIRE(hosts.size() == 4);
  for (const MonitoredHost& host : hosts) {
    REQUIRE(host.samples.size() == 30);
    for (int i = 0; i < 3; ++i) {
      CHECK(host.samples[i].gpus->busy_share == doctest::Approx(1));
      CHECK(host.samples[i].sent_Bps == 0);
    }
    for (int i = 3; i < 15; ++i) {  // 6 MB in 12 ms
      CHECK(host.samples[i].sent_Bps == doctest::Approx(6e6 / 12e-3));
      CHECK(host.samples[i].received_Bps == doctest::Approx(6e6 / 12e-3));
      CHECK(host.samples[i].gpus->busy_share == doctest::Approx(0));
      CHECK(host.samples[i].busy_vcpus == 0);  // exact devices cost their hosts nothing
    }
    for (int i = 0; i < 15; ++i) {  // and again
      CHECK(host.samples[15 + i].gpus->busy_share == doctest::Approx(host.samples[i].gpus->busy_share));
      CHECK(host.samples[15 + i].sent_Bps == doctest::Approx(host.samples[i].sent_Bps));
    }
  }
}

TEST_CASE("monitor: of an interval much longer than what is monitored there is one") {
  const PreparedRun run = prepared(ring_of_four(), ring_of_four().plan());
  for (const MonitoredHost& host : watch_hosts(run, ring_of_four().run(), {}, 1e9, 1e-3)) {
    REQUIRE(host.samples.size() == 1);
    CHECK(host.samples.front().sent_Bps == doctest::Approx(6e6 / 15e-3));
  }
}

TEST_CASE("monitor: phases and changes have the same bytes and work in intervals of any length") {
  const searches::Written written(searches::experiment(
      "resnet18", "{server: gcp-n1-standard-8-k80, nodes: 4}",
      "{kind: elastic, inner: {kind: data_parallel, sync: all_reduce}, reconfigure: restart, schedule: "
      "[{at_step: 0, devices: 2}, {at_step: 20, devices: 4}, {at_step: 50, devices: 3}]}",
      "{global_batch: 48, dataset: {samples: 100000}}"));
  const PreparedRun run = Preparer(*written).prepare(0);
  REQUIRE(run.phased);
  const ReplayResult replayed = replay(run.plan, run.machine, run.cost, {});
  constexpr double all_s = 420;
  const auto sums = [&](double every_s) {
    std::array<double, 3> sum{};
    for (const MonitoredHost& host : watch_hosts(run, replayed, {}, every_s, all_s))
      for (const MonitorSample& sample : host.samples) {
        sum[0] += sample.sent_Bps * every_s;
        sum[1] += sample.received_Bps * every_s;
        if (sample.gpus) sum[2] += sample.gpus->busy_share * every_s;
      }
    return sum;
  };
  const std::array<double, 3> of_one = sums(all_s);
  for (const double sum : of_one) CHECK(sum > 0);
  for (const double every_s : {0.7, 3.0, 10.0, 60.0, 140.0}) {
    CAPTURE(every_s);
    const std::array<double, 3> of_many = sums(every_s);
    for (std::size_t i = 0; i < of_many.size(); ++i) CHECK(of_many[i] == approx(of_one[i]).epsilon(1e-9));
  }
}

TEST_CASE("monitor: a minute's bytes, work and memory are the replay's, whatever the strategy") {
  std::size_t placed = 0, served = 0, endless = 0;
  const auto law = [&](const lab::Experiment& experiment, Dice&) {
    const Plan& plan = experiment.plan();
    const Machine& machine = experiment.machine();
    const ReplayResult replayed = replay(plan, machine, experiment.cost(), {});
    if (replayed.step_time_s <= 0) return;
    (plan.service() ? served : plan.endless() ? endless : placed) += 1;
    // Whole steps, so that the mean is a step's.
    const double every_s = 3 * plan.steps * replayed.step_time_s;
    const std::vector<MonitoredHost> hosts =
        watch_hosts(prepared(experiment, plan), replayed, {}, every_s, every_s);
    REQUIRE(hosts.size() == machine.hosts.size());
    std::vector<double> sent(hosts.size()), received(hosts.size());
    bool wired = false;
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      const Link& link = machine.links[l];
      if (link.kind != LinkKind::nic || link.host == Link::no_host) continue;
      wired = true;
      (link.direction == Link::Direction::up ? sent : received)[link.host] += replayed.links[l].bytes;
    }
    double all_sent = 0, all_received = 0, all_busy_s = 0, busy_s = 0;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      REQUIRE(hosts[h].samples.size() == 1);
      const MonitorSample& sample = hosts[h].samples.front();
      all_sent += sample.sent_Bps, all_received += sample.received_Bps;
      CAPTURE(hosts[h].name);
      if (wired) CHECK(lab::same(sample.sent_Bps * replayed.step_time_s, sent[h]));
      if (wired) CHECK(lab::same(sample.received_Bps * replayed.step_time_s, received[h]));
      if (!sample.gpus) continue;
      all_busy_s += sample.gpus->busy_share * machine.hosts[h].device_count * replayed.step_time_s;
      double most_bytes = 0;
      for (std::size_t d = 0; d < machine.devices.size(); ++d)
        if (machine.devices[d].host == h) most_bytes += replayed.endpoints[d].peak_memory_bytes;
      CHECK(no_more(sample.gpus->tensor_bytes, most_bytes));
      // Devices that do nothing but send hold their tensors in no operation that takes time.
      if (most_bytes > 0 && sample.gpus->busy_share > 0) CHECK(sample.gpus->tensor_bytes > 0);
    }
    CHECK(lab::same(all_sent, all_received));
    for (std::size_t d = 0; d < machine.devices.size(); ++d) busy_s += replayed.endpoints[d].running_s();
    CHECK(lab::same(all_busy_s, busy_s));
  };
  for_random_plans(2, law);
  Dice dice(1);
  for (const char* const weights : {"stash", "double_buffered"})
    for (const int replicas : {1, 2})
      law(lab::Experiment(custom_model(4, 300'000), star(4, "8Gbps", "1ms"),
                          fmt::format("{{kind: pipeline, weights: {}, replicas: {}, micro_batches: 4}}",
                                      weights, replicas),
                          8),
          dice);
  CHECK(placed > 10);
  CHECK(served > 2);
  CHECK(endless == 4);
}
