// SPDX-License-Identifier: MIT
// Laws of pipelines over random models, clusters and options, and their closed forms. Seeds are printed where
// a case fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/plan/ledger.h"
#include "strategies/pipeline/pipeline_schedule.h"
#include "tests/laws/pipelines.h"
#include "tests/support/approx.h"

using namespace convoy;
using lab::branched_model, lab::executed, lab::expected_bytes, lab::stage_of_layers;

namespace {

const std::vector<std::string> schedules{"naive", "gpipe", "1f1b"};

/// A pipeline on equal one-device hosts.
struct PipelineCase {
  unsigned seed;
  std::string model, cluster;
  int devices, stages, replicas, micro_batches, images;  ///< replicas 0: left to partition: optimal
  std::string schedule, partition, recompute;

  explicit PipelineCase(unsigned from_seed) : seed(from_seed) {
    lab::Dice dice(seed);
    model = branched_model(dice);
    stages = dice.between(1, 4);
    replicas = dice.between(0, 2);
    micro_batches = dice.between(1, 6);
    images = dice.between(1, 4);
    devices = stages * std::max(replicas, 1) + (replicas == 0 ? dice.between(0, 2) : 0);
    if (stages * micro_batches < devices) micro_batches = devices;
    schedule = dice.one_of(schedules);
    partition = replicas == 0 ? "optimal" : dice.one_of<std::string>({"even", "balanced", "optimal"});
    recompute = dice.one_of<std::string>({"never", "always", schedule == "gpipe" ? "except_last" : "always"});
    cluster = lab::star(devices, fmt::format("{}MB/s", dice.between(50, 5000)),
                        fmt::format("{}us", dice.between(0, 50)));
  }

  int pipelines() const { return std::max(replicas, 1); }
  std::int64_t global() const { return std::int64_t{images} * micro_batches * pipelines(); }
  std::string strategy() const { return strategy(schedule); }
  std::string strategy(const std::string& with_schedule) const {
    return fmt::format(
        "{{kind: pipeline, stages: {}{}, micro_batches: {}, schedule: {}, partition: {}, recompute: {}}}",
        stages, replicas > 0 ? fmt::format(", replicas: {}", replicas) : "", micro_batches, with_schedule,
        partition, recompute);
  }
  lab::Experiment experiment() const {
    return lab::Experiment::with_global_batch(model, cluster, strategy(), global());
  }
  /// How often forward passes of the whole step run, of all images.
  double forward_images() const {
    const double all = static_cast<double>(global());
    if (recompute == "never") return all;
    return recompute == "always" ? 2 * all : 2 * all - static_cast<double>(images * pipelines());
  }
};

/// Longest path through the operations of one micro-batch.
double critical_path_s(const lab::Experiment& experiment, double images) {
  const TrainingGraph& graph = experiment.graph();
  std::vector<double> end_s(graph.operations.size(), 0.0);
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& op = graph.operations[id];
    for (const OpId input : op.inputs) end_s[id] = std::max(end_s[id], end_s[input]);
    end_s[id] += experiment.cost().time_s(op.work, op.phase == Phase::update ? 1 : images,
                                          experiment.machine().device_types[0]);
  }
  return *std::max_element(end_s.begin(), end_s.end());
}

}  // namespace

TEST_CASE("pipelines: every operation happens once for every image, forward as often as recomputation says") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const PipelineCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    std::map<std::string, double> images = executed(experiment.plan());
    images.erase("received");  // of a pass that computes nothing: it only takes what is sent on
    CHECK(images.size() == experiment.graph().operations.size());
    const std::map<std::string, std::size_t> stage = stage_of_layers(experiment.report());
    CHECK(stage.size() == experiment.graph().model.layers.size());
    for (const Operation& op : experiment.graph().operations) {
      CAPTURE(op.name);
      const Layer& layer = experiment.graph().model.layers[op.layer];
      const PipelineStage& part = experiment.report().stages[stage.at(layer.name)];
      if (op.phase == Phase::update) {
        CHECK(images[op.name] == static_cast<double>(part.devices.size()));
        continue;
      }
      const double wanted = op.phase == Phase::forward ? c.forward_images() : static_cast<double>(c.global());
      // A stage without backward operations has nothing to run forward again for.
      const bool once = op.phase == Phase::forward && images[op.name] == static_cast<double>(c.global()) &&
                        std::none_of(experiment.graph().operations.begin(),
                                     experiment.graph().operations.end(), [&](const Operation& other) {
                                       return other.phase == Phase::weight_gradient &&
                                              stage.at(experiment.graph().model.layers[other.layer].name) ==
                                                  stage.at(layer.name);
                                     });
      CHECK((images[op.name] == wanted || once));
    }
  }
}

TEST_CASE("pipelines: bytes equal the count from the model, time is bounded by work and critical path") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const PipelineCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const ReplayResult result = experiment.run(), unfolded = experiment.run(false);
    CHECK(result.comm_bytes ==
          approx(expected_bytes(experiment, static_cast<double>(c.global()), [](std::size_t) {
            return 1.0;
          })).epsilon(1e-9));
    CHECK(result.step_time_s == approx(unfolded.step_time_s).epsilon(1e-9));
    double busy_s = 0;
    for (std::size_t d = 0; d < experiment.machine().devices.size(); ++d)
      busy_s += result.endpoints[d].compute_s;
    CHECK(result.step_time_s * (1 + 1e-9) >= busy_s / c.devices);
    CHECK(result.step_time_s * (1 + 1e-9) >= critical_path_s(experiment, c.images));
  }
}

TEST_CASE("pipelines: the level of memory over time never exceeds what is reported, and reaches it") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const PipelineCase c(seed);
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const ReplayResult result = experiment.run();
    for (EndpointId d = 0; d < experiment.machine().devices.size(); ++d) {
      double highest = 0;
      for (const MemoryPoint& point :
           memory_of(result, experiment.plan(), experiment.machine(), experiment.cost(), d))
        highest = std::max(highest, std::accumulate(point.bytes.begin(), point.bytes.end(), 0.0));
      CHECK(highest <= result.endpoints[d].peak_memory_bytes * (1 + 1e-12));
      CHECK(highest >= result.endpoints[d].peak_memory_bytes * (1 - 1e-12));
    }
  }
}

TEST_CASE(
    "pipelines: weights, gradients and activations of all stages together hold what a single device holds") {
  // One micro-batch: at the turn from forward to backward the stages hold what one device does, and copies of
  // what crossed.
  for (unsigned seed = 1; seed <= 60; ++seed) {
    PipelineCase c(seed);
    c.replicas = 1;
    c.micro_batches = 1;
    c.devices = c.stages;
    c.recompute = "never";
    c.cluster = lab::star(c.stages, "1GB/s", "1us");
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const lab::Experiment experiment = c.experiment();
    const auto held = [](const Plan& plan) {
      double bytes = 0;
      for (const Role& role : plan.roles)
        for (const Task& task : role.program) {
          if (task.name.starts_with("backward")) break;
          for (const PlanOp& op : task.ops) {
            for (const MemoryDelta& delta : op.allocates) bytes += delta.bytes;
            for (const MemoryDelta& delta : op.frees) bytes -= delta.bytes;
          }
        }
      return bytes;
    };
    double single = 0;
    for (const Buffer& buffer : experiment.graph().buffers) {
      const auto backward = [&](OpId op) {
        return experiment.graph().operations[op].phase != Phase::forward;
      };
      if (!backward(buffer.born) && backward(buffer.dies)) single += buffer.bytes_per_image * c.images;
    }
    double crossing = 0;
    for (const Communication& comm : experiment.plan().communications)
      if (comm.name.starts_with("activations")) crossing += comm.bytes;
    const double image = 3 * 16 * 16 * 4.0 * c.images * c.stages;  // each stage that reads it has a copy
    CHECK(held(experiment.plan()) >= single - 1e-6);
    CHECK(held(experiment.plan()) <= single + crossing + image + 1e-6);
    double resident = 0;
    for (const Role& role : experiment.plan().roles)
      resident += std::accumulate(role.resident_bytes.begin(), role.resident_bytes.end(), 0.0);
    const auto whole = experiment.graph().resident_bytes();
    CHECK(resident == approx(std::accumulate(whole.begin(), whole.end(), 0.0)).epsilon(1e-12));
  }
}

TEST_CASE("1F1B never holds more than GPipe on any device, nor naive more than 1F1B, with the same stages") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    PipelineCase c(seed);
    c.partition = "even";
    if (c.recompute == "except_last") c.recompute = "never";
    c.replicas = std::max(c.replicas, 1);
    c.devices = c.stages * c.replicas;
    c.cluster = lab::star(c.devices, "1GB/s", "1us");
    CAPTURE(seed);
    CAPTURE(c.strategy());
    const auto peaks = [&](const std::string& schedule) {
      const lab::Experiment experiment =
          lab::Experiment::with_global_batch(c.model, c.cluster, c.strategy(schedule), c.global());
      std::vector<double> bytes;
      for (const Role& role : experiment.plan().roles) bytes.push_back(peak_memory(role).bytes);
      return bytes;
    };
    const std::vector<double> naive = peaks("naive"), gpipe = peaks("gpipe"), in_turn = peaks("1f1b");
    for (std::size_t r = 0; r < gpipe.size(); ++r) {
      CHECK(in_turn[r] <= gpipe[r] * (1 + 1e-12));
      CHECK(naive[r] <= in_turn[r] * (1 + 1e-12));
    }
  }
}

TEST_CASE("a pipeline on one device is exactly single, under every schedule") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const std::string model = branched_model(dice), cluster = lab::star(1, "1GB/s", "1us");
    const int micro_batches = dice.between(1, 5);
    const std::int64_t global = micro_batches * dice.between(1, 8);
    const auto run = [&](const std::string& strategy) {
      return lab::Experiment::with_global_batch(
                 model, cluster, fmt::format("{{{}, micro_batches: {}}}", strategy, micro_batches), global)
          .run();
    };
    const ReplayResult single = run("kind: single");
    for (const std::string& schedule : schedules) {
      CAPTURE(schedule);
      const ReplayResult pipeline = run("kind: pipeline, schedule: " + schedule);
      // SimGrid's clock goes on from one replay to the next and loses digits.
      CHECK(pipeline.step_time_s == approx(single.step_time_s).epsilon(1e-9));
      CHECK(pipeline.comm_bytes == 0);
      CHECK(pipeline.endpoints[0].peak_memory_bytes ==
            approx(single.endpoints[0].peak_memory_bytes).epsilon(1e-12));
      for (std::size_t m = 0; m < memory_class_count; ++m)
        CHECK(pipeline.endpoints[0].memory_at_peak[m] ==
              approx(single.endpoints[0].memory_at_peak[m]).epsilon(1e-12));
    }
  }
}

TEST_CASE("equal stages on a fast network: (M + P - 1)(f + b) for GPipe and 1F1B, M P (f + b) for naive") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const int stages = dice.between(1, 8), micro_batches = dice.between(1, 16), layers = dice.between(1, 3);
    const int images = dice.between(1, 8), replicas = dice.between(1, 2);
    const double pass_s = layers * images * 3e9 / 10e12;  // forward and backward of a stage
    for (const std::string& schedule : schedules) {
      CAPTURE(schedule);
      const lab::Experiment experiment = lab::Experiment::with_global_batch(
          lab::custom_model(stages * layers, 0), lab::star(stages * replicas, "1000000GB/s", "0us"),
          fmt::format("{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, schedule: {}, "
                      "partition: even}}",
                      stages, replicas, micro_batches, schedule),
          std::int64_t{images} * micro_batches * replicas);
      const ReplayResult result = experiment.run();
      const double slots = schedule == "naive" ? micro_batches * stages : micro_batches + stages - 1;
      CHECK(std::abs(result.step_time_s / (slots * pass_s) - 1) < 1e-6);
      // The bubble: (P - 1) / (M + P - 1).
      CHECK(1 - result.endpoints[0].compute_s / result.step_time_s ==
            approx(1 - micro_batches / slots).epsilon(1e-6));
    }
  }
}

TEST_CASE("equal stages: GPipe holds M micro-batches, 1F1B as many as stages from there on") {
  // Custom layers keep their input: the image in the first stage, 10 floats an image in the others.
  const int stages = 4, micro_batches = 6, images = 2;
  const auto peak = [&](const std::string& schedule) {
    const lab::Experiment experiment = lab::Experiment::with_global_batch(
        lab::custom_model(stages, 0), lab::star(stages, "1GB/s", "1us"),
        fmt::format("{{kind: pipeline, micro_batches: {}, schedule: {}, partition: even}}", micro_batches,
                    schedule),
        std::int64_t{images} * micro_batches);
    std::vector<double> bytes;
    for (const Role& role : experiment.plan().roles) bytes.push_back(peak_memory(role).bytes);
    return bytes;
  };
  const std::vector<double> gpipe = peak("gpipe"), in_turn = peak("1f1b"), naive = peak("naive");
  for (int s = 0; s < stages; ++s) {
    CAPTURE(s);
    const double input = images * 4.0 * (s == 0 ? 3 * 32 * 32 : 10);
    CHECK(gpipe[static_cast<std::size_t>(s)] - naive[static_cast<std::size_t>(s)] ==
          (micro_batches - 1) * input);
    CHECK(in_turn[static_cast<std::size_t>(s)] - naive[static_cast<std::size_t>(s)] ==
          (stages - s - 1) * input);
  }
}

TEST_CASE("optimal is no slower in the replay than even and balanced, but for the estimate's error") {
  constexpr double estimate_error = 0.02;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    PipelineCase c(seed);
    c.stages = 2 + static_cast<int>(seed % 3);
    c.replicas = 1;
    c.devices = c.stages;
    c.cluster = lab::star(c.devices, fmt::format("{}MB/s", 100 + 60 * seed), "5us");
    CAPTURE(seed);
    const auto step_s = [&](const std::string& partition) {
      c.partition = partition;
      return c.experiment().run().step_time_s;
    };
    CHECK(step_s("optimal") <= std::min(step_s("even"), step_s("balanced")) * (1 + estimate_error));
  }
}

TEST_CASE("what a host does of its own in a step delays replay, step time and the walk over a cut alike") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const TrainingGraph graph = build_training_graph(
        read_model(parse_yaml(branched_model(dice), "model")), {Precision::fp32, Optimizer::momentum});
    const int devices = dice.between(2, 4);
    Machine machine = build_machine(
        read_cluster(parse_yaml(lab::star(devices, fmt::format("{}MB/s", dice.between(50, 5000)), "10us"),
                                "cluster")),
        0);
    const double factor = 0.5 * dice.between(1, 6);
    for (DeviceType& type : machine.device_types) type.issue_factor = factor;
    Software at_once(Precision::fp32);
    at_once.costs.issue_forward_s = 1e-6 * dice.between(0, 50);
    at_once.costs.issue_backward_s = 1e-6 * dice.between(0, 50);
    at_once.costs.issue_update_s = 1e-6 * dice.between(0, 50);
    Software later = at_once;
    later.costs.issue_step_s = 1e-4 * dice.between(1, 30);
    const CostModel cost(at_once), cost_later(later);
    const double delay_s = later.costs.issue_step_s * factor;
    const DeviceType& type = machine.device_types.front();
    CHECK(step_time_s(graph, 8, cost_later, type) ==
          approx(step_time_s(graph, 8, cost, type) + delay_s).epsilon(1e-9));
    for (const char* text : {"{kind: single}", "{kind: data_parallel, sync: all_reduce}",
                             "{kind: pipeline, micro_batches: 2}"}) {
      CAPTURE(text);
      const std::unique_ptr<Strategy> strategy = read_strategy(parse_yaml(text, "strategy"));
      const BatchSpec batch{8, std::nullopt, {"test", 1, 1}};
      const auto step_s = [&](const CostModel& with) {
        const ReportedPlan planned = strategy->plan({graph, machine, with, batch});
        return replay(planned.plan, machine, with, {true, NetworkModel::convoy}).step_time_s;
      };
      CHECK(step_s(cost_later) == approx(step_s(cost) + delay_s).epsilon(1e-9));
    }
    const Units units = find_units(graph);
    const auto walk_s = [&](const CostModel& with) {
      PipelineShape shape{{{0}, {1}}, 2, 3, 4, PipelineSchedule::gpipe, Recompute::never};
      const PipelineCosts costs({graph, machine, with, {}}, units, shape);
      return schedule_s(costs, {{0, 1}, {costs.unit_count() / 2, 1}});
    };
    CHECK(walk_s(cost_later) == approx(walk_s(cost) + delay_s).epsilon(1e-9));
  }
}
