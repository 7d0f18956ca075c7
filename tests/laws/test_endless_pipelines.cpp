// SPDX-License-Identifier: MIT
// Laws of pipelines that are never flushed (PipeDream, PipeDream-2BW), over random models, clusters and
// options, and their closed forms. Seeds are printed where a case fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/plan/ledger.h"
#include "tests/laws/pipelines.h"
#include "tests/support/approx.h"

using namespace convoy;
using lab::base_name;

namespace {

/// A pipeline without flush on equal one-device hosts.
struct EndlessCase {
  unsigned seed;
  std::string model, cluster, weights, recompute;
  std::vector<int> replicas;  ///< of each stage
  int pipelines, micro_batches, images;

  explicit EndlessCase(unsigned from_seed) : seed(from_seed) {
    lab::Dice dice(seed);
    model = lab::branched_model(dice);
    weights = dice.one_of<std::string>({"stash", "double_buffered"});
    recompute = dice.one_of<std::string>({"never", "always"});
    images = dice.between(1, 4);
    pipelines = dice.between(0, 3) == 0 ? 2 : 1;
    for (int s = dice.between(1, 4); s > 0; --s) replicas.push_back(pipelines > 1 ? 1 : dice.between(1, 3));
    // One micro-batch an update, or some multiple of all replicas.
    micro_batches = weights == "stash" && dice.coin() ? 1 : 6 * dice.between(1, 2);
    if (slots() > micro_batches && replicas.size() > 1 && weights != "stash") micro_batches = 12;
    cluster = lab::star(devices(), fmt::format("{}MB/s", dice.between(50, 5000)),
                        fmt::format("{}us", dice.between(0, 50)));
  }

  int slots() const { return std::accumulate(replicas.begin(), replicas.end(), 0); }
  int devices() const { return slots() * pipelines; }
  int stages() const { return static_cast<int>(replicas.size()); }
  std::int64_t global() const { return std::int64_t{images} * micro_batches * pipelines; }
  std::string strategy() const { return strategy(weights, "partition: optimal"); }
  std::string strategy(const std::string& with_weights, const std::string& cut) const {
    return fmt::format(
        "{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, weights: {}, recompute: {}, {}}}",
        stages(),
        pipelines > 1 ? fmt::format("{}", pipelines) : fmt::format("[{}]", fmt::join(replicas, ", ")),
        micro_batches, with_weights, recompute, cut);
  }
  lab::Experiment experiment() const {
    return lab::Experiment::with_global_batch(model, cluster, strategy(), global());
  }
  /// Micro-batches that each replica of a stage adds up for an update.
  int share(std::size_t stage) const { return std::max(1, micro_batches / replicas[stage]); }
};

std::size_t stage_of(const StrategyReport& report, EndpointId device) {
  for (std::size_t s = 0; s < report.stages.size(); ++s)
    for (const EndpointId d : report.stages[s].devices)
      if (d == device) return s;
  return report.stages.size();
}

/// Of an operation or task "name #7": 7.
int number_of(const std::string& name) { return std::stoi(name.substr(name.find('#') + 1)); }

}  // namespace

TEST_CASE(
    "without flush every operation happens once for every micro-batch, on one device of each pipeline") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    std::map<std::string, std::map<int, double>> images;  // by operation and micro-batch
    std::map<std::string, int> again;
    for (const Role& role : experiment.plan().roles)
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops) {
          if (op.name.find(" again") != std::string::npos)
            ++again[base_name(op.name)];
          else
            images[base_name(op.name)][number_of(op.name)] +=
                op.images * static_cast<double>(role.members.size());
        }
    images.erase("received");
    // Copies into and out of them.
    std::erase_if(images, [](const auto& named) { return named.first.starts_with("bucket "); });
    CHECK(images.size() == experiment.graph().operations.size());
    const std::size_t simulated = images.begin()->second.size();
    CHECK(simulated % static_cast<std::size_t>(c.micro_batches) == 0);
    for (const Operation& op : experiment.graph().operations) {
      CAPTURE(op.name);
      if (op.phase == Phase::update) continue;
      CHECK(images[op.name].size() == simulated);
      for (const auto& [micro_batch, count] : images[op.name]) CHECK(count == c.images * c.pipelines);
      if (c.recompute == "always" && op.phase == Phase::forward)
        CHECK((again[op.name] == static_cast<int>(simulated) || again[op.name] == 0));
    }
  }
}

TEST_CASE("without flush a stage updates once for every replica's share of micro-batches, on all of them") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    for (const Role& role : experiment.plan().roles) {
      const std::size_t s = stage_of(experiment.report(), role.members[0]);
      int backward = 0, updates = 0;
      for (const Task& task : role.program) {
        if (task.name.starts_with("backward")) ++backward;
        if (task.name.starts_with("update")) {
          CHECK(number_of(task.name) == updates++);
          CHECK(backward == updates * c.share(s));  // those whose gradients it applies are complete
        }
      }
      CHECK(updates > 0);
      CHECK(backward / c.share(s) - updates <= 1);
    }
  }
}

TEST_CASE(
    "without flush: roles are called by their stages, and step k ends with the last of its micro-batches") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const EndlessRun* const run = experiment.plan().endless();
    REQUIRE(run);
    std::set<std::string> names;  // of roles: their stage, and what tells them apart in it
    for (const Role& role : experiment.plan().roles) {
      const std::size_t stage = stage_of(experiment.report(), role.members.front());
      CHECK(role.name.starts_with(fmt::format("stage {} ", stage)));
      CHECK(names.insert(role.name).second);
    }
    for (std::size_t k = 0; k < run->steps.size(); ++k) {
      std::set<std::size_t> stages;  // of each one slot has the last micro-batch
      for (const EndlessRun::End& end : run->steps[k]) {
        const Role& role = experiment.plan().roles[end.role];
        CAPTURE(role.name);
        const std::string& name = role.program[end.task].name;
        CHECK(name == fmt::format("backward #{}", (k + 1) * static_cast<std::size_t>(c.micro_batches) - 1));
        CHECK(stages.insert(stage_of(experiment.report(), role.members.front())).second);
      }
      CHECK(stages.size() == c.replicas.size());
    }
  }
}

TEST_CASE("without flush: staleness and versions of weights are those that the replay's times show") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const ReplayResult result = experiment.run();
    for (const Timeline& timeline : result.timelines) {
      const Role& role = experiment.plan().roles[timeline.role];
      const std::size_t s = stage_of(experiment.report(), timeline.representative);
      const PipelineStage& stage = experiment.report().stages[s];
      std::vector<double> forward_s, backward_end_s, update_s;
      for (TaskId t = 0; t < role.program.size(); ++t) {
        const std::string& name = role.program[t].name;
        if (role.program[t].kind != Task::Kind::compute) continue;
        if (name.starts_with("forward")) forward_s.push_back(timeline.tasks[t].start_s);
        if (name.starts_with("backward")) backward_end_s.push_back(timeline.tasks[t].end_s);
        if (name.starts_with("update")) update_s.push_back(timeline.tasks[t].end_s);
      }
      const auto updates_before = [&](double time_s) {
        return std::upper_bound(update_s.begin(), update_s.end(), time_s * (1 + 1e-12)) - update_s.begin();
      };
      double sum = 0, worst = 0, count = 0;
      std::int64_t versions = 1;
      const auto share = static_cast<std::size_t>(c.share(s));
      for (std::size_t j = 0; j < share * update_s.size(); ++j) {
        const auto u = static_cast<std::int64_t>(j / share);
        // Double-buffered weights are those of the update before the last one's gradients came in.
        const std::int64_t version = c.weights == "double_buffered" && c.stages() > 1
                                         ? std::max<std::int64_t>(0, u - 1)
                                         : updates_before(forward_s[j]);
        CHECK(version <= updates_before(forward_s[j]));  // it is there
        versions = std::max(versions, updates_before(backward_end_s[j] * (1 - 1e-9)) - version + 1);
        if (j < share * (update_s.size() / 2)) continue;
        sum += static_cast<double>(u - version);
        worst = std::max(worst, static_cast<double>(u - version));
        ++count;
      }
      CHECK(stage.staleness.mean == approx(sum / count).epsilon(1e-9));
      CHECK(stage.staleness.max == worst);
      CHECK(versions <= stage.weight_versions);
    }
  }
}

TEST_CASE("PipeDream: stage s of P misses P - 1 - s updates and keeps P - s versions of its weights") {
  const int stages = 5, images = 2;
  const std::int64_t parameters = 1000;
  const lab::Experiment experiment = lab::Experiment::with_global_batch(
      lab::custom_model(stages, parameters), lab::star(stages, "1GB/s", "1us"),
      "{kind: pipeline, weights: stash, partition: even}", images);
  const lab::Experiment flushed = lab::Experiment::with_global_batch(
      lab::custom_model(stages, parameters), lab::star(stages, "1GB/s", "1us"),
      "{kind: pipeline, partition: even}", images);
  for (std::size_t s = 0; s < stages; ++s) {
    CAPTURE(s);
    const PipelineStage& stage = experiment.report().stages[s];
    const double behind = static_cast<double>(stages - 1 - s);
    CHECK(stage.staleness.mean == behind);
    CHECK(stage.staleness.max == behind);
    CHECK(stage.weight_versions == stages - s);
    // So many more copies of the weights, and inputs of as many more micro-batches: 10 floats an image, in
    // the first stage the image.
    const double held = images * 4.0 * (s == 0 ? 3 * 32 * 32 : 10);
    CHECK(peak_memory(experiment.plan().roles[s]).bytes - peak_memory(flushed.plan().roles[s]).bytes ==
          behind * (4.0 * parameters + held));
  }
  REQUIRE(experiment.report().staleness);
  CHECK(experiment.report().staleness->mean == 2);  // of 4, 3, 2, 1, 0
  CHECK(experiment.report().staleness->max == 4);
}

TEST_CASE("PipeDream-2BW: every gradient misses one update, and two versions are enough") {
  for (const int micro_batches : {4, 5, 8}) {
    CAPTURE(micro_batches);
    const lab::Experiment experiment = lab::Experiment::with_global_batch(
        lab::custom_model(4, 1000), lab::star(4, "1GB/s", "1us"),
        fmt::format("{{kind: pipeline, weights: double_buffered, micro_batches: {}, partition: even}}",
                    micro_batches),
        micro_batches);
    for (const PipelineStage& stage : experiment.report().stages) {
      CHECK(stage.staleness == Staleness{1, 1});
      CHECK(stage.weight_versions == 2);
    }
  }
}

TEST_CASE("without flush: equal stages on a fast network compute all the time, M (f + b) a step") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const int stages = dice.between(1, 8), layers = dice.between(1, 3), images = dice.between(1, 8);
    const int pipelines = dice.between(1, 2);
    const std::string weights = dice.one_of<std::string>({"stash", "double_buffered"});
    const int micro_batches = weights == "stash" ? dice.between(1, 6) : stages + dice.between(0, 4);
    const double pass_s = layers * images * 3e9 / 10e12;  // forward and backward of a stage
    const lab::Experiment experiment = lab::Experiment::with_global_batch(
        lab::custom_model(stages * layers, 0), lab::star(stages * pipelines, "1000000GB/s", "0us"),
        fmt::format("{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, weights: {}, partition: "
                    "even}}",
                    stages, pipelines, micro_batches, weights),
        std::int64_t{images} * micro_batches * pipelines);
    const ReplayResult result = experiment.run();
    CHECK(result.step_time_s == approx(micro_batches * pass_s).epsilon(1e-6));
    for (EndpointId d = 0; d < experiment.machine().devices.size(); ++d)
      CHECK(result.endpoints[d].compute_s == approx(result.step_time_s).epsilon(1e-6));
  }
}

TEST_CASE("without flush: the slowest stage sets the pace, with the sum of its gradients over its replicas") {
  // 1 + 2 GFLOP an image and layer at 10 TFLOPS: 0.3 ms. Stages of 4, 2 and 2 layers, 3, 2 and 1 devices: a
  // micro-batch of one image needs 1.2/3, 0.6/2 and 0.6 ms. No sums with no parameters.
  const auto step_s = [](std::int64_t parameters, const std::string& replicas, const std::string& begins,
                         int layers, int devices) {
    return lab::Experiment::with_global_batch(
               lab::custom_model(layers, parameters), lab::star(devices, "1GB/s", "0us"),
               fmt::format("{{kind: pipeline, weights: stash, replicas: {}, begins: {}}}", replicas, begins),
               1)
        .run()
        .step_time_s;
  };
  CHECK(step_s(0, "[3, 2, 1]", "[body4, body6]", 8, 6) == approx(0.6e-3).epsilon(1e-3));
  // Data parallelism, 1.2 ms of work: three replicas sum 4 x 1.2 MB in a ring, 2 (2/3) 4.8 MB at 1 GB/s =
  // 6.4 ms, and three images are learnt from meanwhile.
  CHECK(step_s(300'000, "[3]", "[]", 4, 3) == approx((1.2e-3 + 6.4e-3) / 3).epsilon(1e-6));
}

TEST_CASE("without flush: two stages with a slow link wait for it half of the time that a round trip has") {
  // The first stage has two micro-batches under way: 2 (f + b) + 2 L in which two are done.
  const double latency_s = 100e-6, pass_s = 0.3e-3;
  const lab::Experiment experiment =
      lab::Experiment::with_global_batch(lab::custom_model(2, 0), lab::star(2, "1000000GB/s", "100us"),
                                         "{kind: pipeline, weights: stash, partition: even}", 1);
  const ReplayResult result = experiment.run();
  CHECK(result.step_time_s == approx(pass_s + latency_s).epsilon(1e-6));
  CHECK(result.endpoints[0].compute_s == approx(pass_s).epsilon(1e-6));
}

TEST_CASE("without flush: one device is exactly single") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const std::string model = lab::branched_model(dice), cluster = lab::star(1, "1GB/s", "1us");
    const int micro_batches = dice.between(1, 5);
    const std::int64_t global = micro_batches * dice.between(1, 8);
    const auto run = [&](const std::string& strategy) {
      return lab::Experiment::with_global_batch(
                 model, cluster, fmt::format("{{{}, micro_batches: {}}}", strategy, micro_batches), global)
          .run();
    };
    const ReplayResult single = run("kind: single");
    for (const std::string weights : {"stash", "double_buffered"}) {
      const ReplayResult pipeline = run("kind: pipeline, weights: " + weights);
      CHECK(pipeline.step_time_s == approx(single.step_time_s).epsilon(1e-9));
      CHECK(pipeline.comm_bytes == 0);
      CHECK(pipeline.endpoints[0].compute_s == approx(single.endpoints[0].compute_s).epsilon(1e-9));
      CHECK(pipeline.endpoints[0].peak_memory_bytes ==
            approx(single.endpoints[0].peak_memory_bytes).epsilon(1e-12));
    }
  }
}

TEST_CASE("without flush: bytes of a step equal the count from the model, its time covers the work") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const ReplayResult result = experiment.run(), unfolded = experiment.run(false);
    const double bytes = lab::expected_bytes(experiment, static_cast<double>(c.global()), [&](std::size_t s) {
      return static_cast<double>(c.micro_batches) / (c.share(s) * c.replicas[s]);
    });
    CHECK(result.comm_bytes == approx(bytes).epsilon(1e-9));
    CHECK(result.step_time_s == approx(unfolded.step_time_s).epsilon(1e-6));
    double busy_s = 0;
    for (EndpointId d = 0; d < experiment.machine().devices.size(); ++d) {
      busy_s += result.endpoints[d].compute_s;
      CHECK(result.endpoints[d].compute_s <= result.step_time_s * (1 + 1e-6));
      double highest = 0;
      for (const MemoryPoint& point :
           memory_of(result, experiment.plan(), experiment.machine(), experiment.cost(), d))
        highest = std::max(highest, std::accumulate(point.bytes.begin(), point.bytes.end(), 0.0));
      CHECK(highest == approx(result.endpoints[d].peak_memory_bytes).epsilon(1e-12));
    }
    // The work of a step, counted from the graph: all passes, and each device's share of an update.
    const DeviceType& type = experiment.machine().device_types[0];
    const auto stage = lab::stage_of_layers(experiment.report());
    double work_s = 0;
    for (const Operation& op : experiment.graph().operations) {
      const std::size_t s = stage.at(experiment.graph().model.layers[op.layer].name);
      work_s += op.phase == Phase::update
                    ? experiment.cost().time_s(op.work, 1, type) * c.micro_batches * c.pipelines / c.share(s)
                    : experiment.cost().time_s(op.work, c.images, type) * c.micro_batches * c.pipelines;
    }
    // Where messages pile up on links a device may have done another micro-batch by the end of the steps that
    // the mean is over, of which there are 48 or more.
    const bool links_are_slow = result.step_time_s > 10 * busy_s;
    if (c.recompute == "never") CHECK(busy_s == approx(work_s).epsilon(links_are_slow ? 1.0 / 48 : 1e-6));
    CHECK(result.step_time_s * (1 + 1e-6) >= work_s / c.devices());
  }
}

TEST_CASE("without flush a pipeline is no slower than with it, stage by stage the same") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const EndlessCase c(seed);
    const int most = *std::max_element(c.replicas.begin(), c.replicas.end());
    if (most > c.micro_batches) continue;  // flushed, replicas would have nothing to do
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const auto step_s = [&](const std::string& weights) {
      return lab::Experiment::with_global_batch(c.model, c.cluster, c.strategy(weights, "partition: even"),
                                                c.global())
          .run()
          .step_time_s;
    };
    CHECK(step_s(c.weights) <= step_s("flush") * (1 + 1e-6));
  }
}
