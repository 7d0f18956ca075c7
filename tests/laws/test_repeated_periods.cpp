// SPDX-License-Identifier: MIT
// Laws of steps of many micro-batches, most of which plans leave out: over random pipelines and accumulations,
// beside the same steps with every micro-batch planned and replayed. Seeds are printed where a case fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "sim/plan/images_met.h"
#include "sim/plan/ledger.h"
#include "sim/plan/process_memory.h"
#include "sim/plan/repetition.h"
#include "sim/replay/lower_bound.h"
#include "tests/laws/pipelines.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Many micro-batches on devices of different speeds, some of a kind that its host keeps waiting.
struct ManyMicroBatches {
  unsigned seed;
  std::string model, cluster, strategy;
  std::int64_t global;

  explicit ManyMicroBatches(unsigned from_seed) : seed(from_seed) {
    lab::Dice dice(seed);
    model = lab::branched_model(dice);
    const bool accumulates = dice.between(0, 3) == 0;
    const int stages = accumulates ? 1 : dice.between(2, 4);
    const int pipelines = dice.between(0, 2) == 0 ? 2 : 1;
    std::vector<int> replicas(static_cast<std::size_t>(stages), 1);
    const bool takes_turns = !accumulates && pipelines == 1 && dice.coin();
    for (int& each : replicas)
      if (takes_turns) each = dice.between(1, 3);
    const int devices = pipelines * std::accumulate(replicas.begin(), replicas.end(), 0);
    const int micro_batches = dice.between(380, 520);
    const int images = dice.between(1, 3);
    global = std::int64_t{images} * micro_batches * pipelines;
    const std::string device = dice.one_of<std::string>({"ideal", "v100-sxm2-16gb", "h100-sxm5-80gb"});
    cluster = fmt::format(
        "{{name: lab, nodes: [{{name: n, count: {}, server: box{}}}], fabric: {{kind: {}, bandwidth: {}MB/s, "
        "latency: {}us}}, servers: {{box: {{devices: [{{device: {}, count: 1}}], interconnect: {{kind: "
        "none}}}}}}, devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, "
        "efficiency: 1.0, launch_overhead: 0us}}}}}}",
        devices, dice.coin() ? "" : ", speed_spread: 0.3", dice.between(0, 4) == 0 ? "shared" : "switch",
        dice.between(50, 20000), dice.between(0, 50), device);
    if (accumulates)
      strategy = fmt::format("{{kind: data_parallel, sync: all_reduce, micro_batches: {}, zero: {}}}",
                             micro_batches, dice.between(0, 1));
    else
      strategy = fmt::format(
          "{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, schedule: {}, recompute: {}, "
          "partition: {}}}",
          stages, takes_turns ? fmt::format("[{}]", fmt::join(replicas, ", ")) : fmt::format("{}", pipelines),
          micro_batches, dice.between(0, 3) == 0 ? "naive" : "1f1b", dice.coin() ? "never" : "always",
          takes_turns ? "optimal" : dice.one_of<std::string>({"even", "balanced", "optimal"}));
  }

  lab::Experiment experiment() const {
    TrainingOptions options;
    return lab::Experiment::with_global_batch(model, cluster, strategy, global, options);
  }
};

/// With every micro-batch, as plans are that say what their tasks mean.
Plan every_task(const lab::Experiment& it) {
  Plan plan = it.strategy().plan({it.graph(), it.machine(), it.cost(), it.batch(), true}).plan;
  plan.meaning.reset();
  return plan;
}

void check_same_deltas(const std::vector<MemoryDelta>& a, const std::vector<MemoryDelta>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK((a[i].memory_class == b[i].memory_class && a[i].bytes == b[i].bytes));
}

void check_same_programs(const Plan& a, const Plan& b) {
  REQUIRE(a.roles.size() == b.roles.size());
  CHECK(a.communications.size() == b.communications.size());
  for (std::size_t r = 0; r < a.roles.size(); ++r) {
    CHECK(a.roles[r].name == b.roles[r].name);
    CHECK(a.roles[r].members == b.roles[r].members);
    CHECK_FALSE(a.roles[r].repeats.has_value());
    const std::vector<Task>&one = a.roles[r].program.get(), &other = b.roles[r].program.get();
    REQUIRE(one.size() == other.size());
    for (TaskId t = 0; t < one.size(); ++t) {
      REQUIRE(one[t].name == other[t].name);
      REQUIRE((one[t].kind == other[t].kind && one[t].stream == other[t].stream));
      REQUIRE(one[t].after == other[t].after);
      REQUIRE(one[t].ops.size() == other[t].ops.size());
      for (std::size_t i = 0; i < one[t].ops.size(); ++i) {
        REQUIRE(name_of(one[t], one[t].ops[i]) == name_of(other[t], other[t].ops[i]));
        CHECK((one[t].ops[i].images == other[t].ops[i].images &&
               one[t].ops[i].operation == other[t].ops[i].operation));
        check_same_deltas(one[t].ops[i].allocates, other[t].ops[i].allocates);
        check_same_deltas(one[t].ops[i].frees, other[t].ops[i].frees);
      }
      if (one[t].kind == Task::Kind::compute) continue;
      const Communication &x = a.communications[one[t].comm], &y = b.communications[other[t].comm];
      REQUIRE(x.name == y.name);
      CHECK((x.bytes == y.bytes && x.overhead_s == y.overhead_s &&
             a.patterns[x.pattern].groups == b.patterns[y.pattern].groups));
    }
  }
}

/// Equal to 1e-12 of `scale`.
bool equal(double a, double b, double scale) { return std::abs(a - b) <= 1e-12 * scale; }

void check_same_results(const ReplayResult& a, const ReplayResult& b) {
  const double step_s = b.step_time_s;
  CHECK(equal(a.step_time_s, step_s, step_s));
  CHECK(equal(a.comm_bytes, b.comm_bytes, b.comm_bytes));
  for (std::size_t e = 0; e < b.endpoints.size(); ++e) {
    CAPTURE(e);
    const EndpointUsage one = a.endpoints[e], other = b.endpoints[e];
    CHECK(equal(one.end_s, other.end_s, step_s));
    CHECK(equal(one.compute_s, other.compute_s, step_s));
    CHECK(equal(one.issue_wait_s, other.issue_wait_s, step_s));
    CHECK(equal(one.exposed_comm_s, other.exposed_comm_s, step_s));
    CHECK(equal(one.hidden_comm_s, other.hidden_comm_s, step_s));
    CHECK(equal(one.comm_slack_s, other.comm_slack_s, step_s));
    CHECK(equal(one.sent_bytes, other.sent_bytes, other.sent_bytes));
    CHECK(equal(one.received_bytes, other.received_bytes, other.received_bytes));
    CHECK(equal(one.peak_memory_bytes, other.peak_memory_bytes, other.peak_memory_bytes));
    CHECK(one.memory_at_peak == other.memory_at_peak);
  }
  for (std::size_t l = 0; l < b.links.size(); ++l) {
    CHECK(equal(a.links[l].bytes, b.links[l].bytes, b.links[l].bytes));
    CHECK(equal(a.links[l].busy_s, b.links[l].busy_s, step_s));
  }
  for (std::size_t p = 0; p < b.port_busy_s.size(); ++p)
    CHECK(equal(a.port_busy_s[p], b.port_busy_s[p], step_s));
}

/// Whether the replay needed no more tasks than the plan lists.
bool took_the_short_way(const ReplayResult& result, const Plan& plan) {
  return std::ranges::all_of(result.timelines, [&](const Timeline& timeline) {
    return timeline.tasks.size() == plan.roles[timeline.role].program.size();
  });
}

/// Whether the replay needed fewer than half of all tasks.
bool needed_few_tasks(const ReplayResult& result, const ReplayResult& every) {
  return 2 * result.timelines[0].tasks.size() < every.timelines[0].tasks.size();
}

}  // namespace

TEST_CASE("repeated periods: a plan with all that it leaves out is the plan of every micro-batch") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const ManyMicroBatches c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy);
    const lab::Experiment it = c.experiment();
    REQUIRE(left_out(it.plan()) != nullptr);
    const Plan every = every_task(it);
    check_same_programs(with_all_listed(it.plan()), every);
    check_same_programs(with_all_listed(with_more_listed(it.plan(), 7)), every);
    CHECK(images_met(it.plan(), static_cast<std::uint32_t>(it.machine().devices.size())) ==
          images_met(every, static_cast<std::uint32_t>(it.machine().devices.size())));
    for (std::size_t r = 0; r < every.roles.size(); ++r) {
      CHECK(peak_memory(it.plan().roles[r]).bytes == peak_memory(every.roles[r]).bytes);
      const DeviceType& type = it.machine().device_types[0];
      CHECK(process_memory(it.plan().roles[r], type, it.graph().options).bytes ==
            process_memory(every.roles[r], type, it.graph().options).bytes);
    }
  }
}

TEST_CASE("repeated periods: what is left out takes what it takes where it is replayed") {
  int short_ways = 0;
  constexpr unsigned cases = 48;
  for (unsigned seed = 1; seed <= cases; ++seed) {
    const ManyMicroBatches c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy);
    CAPTURE(c.cluster);
    const lab::Experiment it = c.experiment();
    REQUIRE(left_out(it.plan()) != nullptr);
    const ReplayResult result = it.run();
    const Plan every = every_task(it);
    check_same_results(result, replay(every, it.machine(), it.cost(), {}));
    if (took_the_short_way(result, it.plan())) ++short_ways;
    if (seed > 12) continue;
    const LowerBound bound = lower_bound(it.plan(), it.machine(), it.cost());
    const LowerBound of_all = lower_bound(every, it.machine(), it.cost());
    CHECK(bound.step_time_s <= result.step_time_s * (1 + 1e-12));
    CHECK(bound.step_time_s <= of_all.step_time_s * (1 + 1e-12));
    CHECK(equal(bound.critical_compute_s, of_all.critical_compute_s, of_all.step_time_s));
  }
  CHECK(short_ways >= static_cast<int>(cases) / 3);
}

TEST_CASE("repeated periods: 10,000 micro-batches on equal stages take (M + P - 1)(f + b)") {
  // 4 stages of a layer of 0.1 ms forward and 0.2 ms backward; messages of 40 bytes take 4e-14 s, less than what
  // the engine tells apart (1e-12 s), so that as much may be missing of each of 20,000 tasks.
  const lab::Experiment it = lab::Experiment::with_global_batch(
      lab::custom_model(4, 0), lab::star(4, "1000000GB/s", "0us"),
      "{kind: pipeline, stages: 4, micro_batches: 10000, schedule: 1f1b, partition: even}", 10'000);
  const ReplayResult result = it.run();
  CHECK(result.step_time_s == approx((10'000 + 3) * 0.3e-3).epsilon(1e-9));
  for (std::size_t d = 0; d < 4; ++d)
    CHECK(result.endpoints[d].compute_s == approx(10'000 * 0.3e-3).epsilon(1e-9));
  CHECK(result.comm_bytes == approx(10'000 * 3 * 2 * 40).epsilon(1e-12));
  CHECK(took_the_short_way(result, it.plan()));
}

TEST_CASE("repeated periods: where shared links double what was rounded, the short way is not rounded more") {
  // ResNet-50 in eight stages, whose messages meet on their links: the last bits of the clock are doubled from
  // message to message. The same step seven times as slow is rounded otherwise, and shows by how much.
  std::vector<double> short_s, every_s;
  for (const double slower : {1.0, 7.0}) {
    const std::string cluster = fmt::format(
        "{{name: lab, nodes: [{{name: n, count: 8, server: box}}], fabric: {{kind: switch, bandwidth: "
        "{}Gbps, latency: {}us}}, servers: {{box: {{devices: [{{device: ideal, count: 1}}], interconnect: "
        "{{kind: none}}}}}}, devices: {{ideal: {{peak: {{fp32: {}TFLOPS}}, memory: 16GiB, memory_bandwidth: "
        "{}GB/s, efficiency: 1.0, launch_overhead: 0us}}}}}}",
        100 / slower, 10 * slower, 10 / slower, 500 / slower);
    const lab::Experiment it = lab::Experiment::with_global_batch(
        "resnet50", cluster, "{kind: pipeline, stages: 8, micro_batches: 2000}", 2000);
    const ReplayResult result = it.run(), every = replay(every_task(it), it.machine(), it.cost(), {});
    CHECK(needed_few_tasks(result, every));
    short_s.push_back(result.step_time_s / slower);
    every_s.push_back(every.step_time_s / slower);
    for (std::size_t e = 0; e < 8; ++e) {
      const EndpointUsage one = result.endpoints[e], other = every.endpoints[e];
      CHECK(std::abs(one.exposed_comm_s - other.exposed_comm_s) <= 1e-10 * every.step_time_s);
      CHECK(std::abs(one.hidden_comm_s - other.hidden_comm_s) <= 1e-10 * every.step_time_s);
      CHECK(std::abs(result.links[e].busy_s - every.links[e].busy_s) <= 1e-10 * every.step_time_s);
    }
  }
  CHECK(std::abs(short_s[0] - short_s[1]) < std::abs(every_s[0] - every_s[1]));
  for (const double each_s : short_s) {
    CHECK(each_s > std::ranges::min(every_s));
    CHECK(each_s < std::ranges::max(every_s));
  }
}

TEST_CASE("repeated periods: where the second device is hardly slower, the replay lists more of them") {
  // The first device is ahead by a little more after every micro-batch, until it may have no more under way.
  const std::string cluster = fmt::format(
      "{{name: lab, nodes: [{{name: a, count: 1, server: box}}, {{name: b, count: 1, server: box, speed: "
      "0.99}}], fabric: {{kind: switch, bandwidth: 10GB/s, latency: 10us}}, {}}}",
      lab::ideal_servers());
  const lab::Experiment it = lab::Experiment::with_global_batch(
      lab::custom_model(2, 1000), cluster,
      "{kind: pipeline, stages: 2, micro_batches: 1500, schedule: 1f1b, partition: even}", 1500);
  REQUIRE(left_out(it.plan()) != nullptr);
  const ReplayResult result = it.run();
  check_same_results(result, replay(every_task(it), it.machine(), it.cost(), {}));
}

TEST_CASE("repeated periods: a disturbed machine and SimGrid's own model are asked about every micro-batch") {
  const lab::Experiment it = lab::Experiment::with_global_batch(
      lab::custom_model(2, 1000), lab::star(2, "10GB/s", "0us"),
      "{kind: pipeline, stages: 2, micro_batches: 400, schedule: 1f1b, partition: even}", 400);
  REQUIRE(left_out(it.plan()) != nullptr);
  const double step_s = it.run().step_time_s;
  ReplayOptions options;
  options.disturbances.stops.push_back({step_s / 2, 1, step_s / 2 + 1});
  const ReplayResult stopped = replay(it.plan(), it.machine(), it.cost(), options);
  CHECK(stopped.step_time_s == approx(step_s + 1).epsilon(1e-7));  // a message or two are hidden by it
  CHECK_FALSE(took_the_short_way(stopped, it.plan()));
  const ReplayResult reference = it.run(true, NetworkModel::simgrid);
  CHECK(reference.step_time_s == approx(step_s).epsilon(1e-6));
  CHECK_FALSE(took_the_short_way(reference, it.plan()));
}
