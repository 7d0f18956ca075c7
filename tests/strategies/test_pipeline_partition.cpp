// SPDX-License-Identifier: MIT
// Partitions against exhaustive search, and costs against a second, direct count.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "strategies/pipeline/pipeline_partition.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// A random pipeline problem.
struct Problem {
  explicit Problem(unsigned seed, bool branched, bool spread, bool endless = false) : random(seed) {
    const int layers = pick(branched ? 4 : 3, branched ? 9 : 12);
    const int devices = pick(2, std::min(spread ? 4 : 5, layers));
    model = read_model(parse_yaml(branched ? branched_model(layers) : chain(layers), "model"));
    graph = build_training_graph(model, {Precision::fp32, Optimizer::momentum});
    const std::string cluster =
        lab::star(devices, fmt::format("{}MB/s", pick(20, 2000)), fmt::format("{}us", pick(0, 100)),
                  pick(0, 1) ? ", speed_spread: 0.3" : "");
    machine = build_machine(read_cluster(parse_yaml(cluster, "cluster")), 0);
    for (EndpointId d = 0; d < machine.devices.size(); ++d) shape.slots.push_back({d});
    shape.stages = static_cast<std::uint32_t>(spread ? pick(1, devices) : devices);
    shape.micro_batches = pick(1, 12);
    if (shape.micro_batches * shape.stages < devices) shape.micro_batches = devices;
    shape.images = pick(1, 8);
    shape.schedule = static_cast<PipelineSchedule>(pick(0, 2));
    shape.recompute = static_cast<Recompute>(pick(0, 2));
    if (endless) {
      shape.schedule = PipelineSchedule::one_f_one_b;
      shape.weights = pick(0, 1) ? Weights::stash : Weights::double_buffered;
      if (pick(0, 1)) shape.micro_batches = 1;
    }
    units = find_units(graph);
    limit_memory();
  }

  PipelineCosts costs() const { return {{graph, machine, cost, {}}, units, shape}; }

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

  std::string chain(int layers) {
    std::string text = "{name: chain, input: [3, 8, 8], layers: [";
    for (int i = 0; i < layers; ++i)
      text += fmt::format(
          "{{name: l{}, kind: custom, forward_flops: {}e7, backward_flops: {}e7, parameters: {}, "
          "output: [{}], memory_bytes: 0}},",
          i, pick(1, 100), pick(1, 200), pick(0, 200'000), pick(100, 50'000));
    return text + "]}";
  }

  std::string branched_model(int layers) {
    std::string text = "{name: branched, input: [3, 8, 8], layers: [";
    for (int i = 0; i < layers; ++i) {
      const auto before = [&] { return i == 0 ? std::string("input") : fmt::format("l{}", pick(0, i - 1)); };
      text +=
          i > 1 && pick(0, 2) == 0
              ? fmt::format("{{name: l{}, kind: concat, inputs: [{}, {}]}},", i, before(), before())
              : fmt::format(
                    "{{name: l{}, kind: conv2d, out_channels: {}, kernel: {}, padding: 1, inputs: [{}]}},", i,
                    pick(1, 40), 3, before());
    }
    return text + "]}";
  }

  /// Sometimes so little that not all cuts fit.
  void limit_memory() {
    if (pick(0, 1)) return;
    double whole = saved_activation_bytes(graph) * shape.images * static_cast<double>(shape.micro_batches);
    for (const double bytes : graph.resident_bytes()) whole += bytes;
    machine.device_types[0].memory_bytes = whole * pick(20, 90) / 100;
  }

  std::mt19937 random;
  Model model;
  TrainingGraph graph;
  CostModel cost{Precision::fp32};
  Machine machine;
  Units units;
  PipelineShape shape;
};

/// All ways to cut n units into stages and to give them the slots.
void for_all_cuts(const PipelineCosts& costs,
                  const std::function<void(const std::vector<StageChoice>&)>& visit) {
  std::vector<StageChoice> stages;
  const std::function<void(std::uint32_t, std::uint32_t)> extend = [&](std::uint32_t unit,
                                                                       std::uint32_t slots) {
    const auto left = costs.shape().stages - static_cast<std::uint32_t>(stages.size());
    if (left == 0) {
      if (unit == costs.unit_count() && slots == costs.slot_count()) visit(stages);
      return;
    }
    for (std::uint32_t next = unit + 1; next <= costs.unit_count(); ++next)
      for (std::uint32_t more = 1; slots + more <= costs.slot_count(); ++more) {
        stages.push_back({unit, more});
        extend(next, slots + more);
        stages.pop_back();
      }
  };
  extend(0, 0);
}

/// Every replica of a stage needs a micro-batch; without flush equally many, or one for each update.
bool may_take(const PipelineShape& shape, std::uint32_t slots) {
  if (shape.weights == Weights::flush) return slots <= shape.micro_batches;
  return shape.micro_batches == 1 || shape.micro_batches % slots == 0;
}

void check_optimal(const Problem& problem) {
  const PipelineCosts costs = problem.costs();
  double best = std::numeric_limits<double>::infinity(), best_that_fits = best;
  std::size_t cuts = 0;
  for_all_cuts(costs, [&](const std::vector<StageChoice>& stages) {
    for (const StageChoice& stage : stages)
      if (!may_take(costs.shape(), stage.slots)) return;
    for (std::size_t s = 0; s < costs.shape().stage_slots.size(); ++s)
      if (stages[s].slots != costs.shape().stage_slots[s]) return;
    ++cuts;
    best = std::min(best, costs.step_s(stages));
    if (costs.fits(stages)) best_that_fits = std::min(best_that_fits, costs.step_s(stages));
  });
  const std::vector<StageChoice> found = partition_pipeline(StageCut::optimal, costs);
  if (cuts == 0) {
    CHECK(found.empty());
    return;
  }
  REQUIRE(found.size() == costs.shape().stages);
  const bool some_fit = best_that_fits < std::numeric_limits<double>::infinity();
  CHECK(costs.fits(found) == some_fit);
  CHECK(costs.step_s(found) == doctest::Approx(some_fit ? best_that_fits : best).epsilon(1e-9));
}

}  // namespace

TEST_CASE("optimal equals exhaustive search on chains of up to 12 layers") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    check_optimal(Problem(seed, false, false));
  }
}

TEST_CASE("optimal equals exhaustive search on small branched graphs") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    check_optimal(Problem(seed, true, false));
  }
}

TEST_CASE("optimal equals exhaustive search where stages may take several devices") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    check_optimal(Problem(seed, seed % 2 == 0, true));
  }
}

TEST_CASE(
    "optimal equals exhaustive search without flush, on chains and branched graphs, with and without "
    "replicas") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    check_optimal(Problem(seed, seed % 2 == 0, seed % 3 != 0, true));
  }
}

TEST_CASE("optimal equals exhaustive search where the replicas of each stage are given") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Problem problem(seed, seed % 2 == 0, true, seed % 4 > 1);
    for_all_cuts(problem.costs(), [&](const std::vector<StageChoice>& stages) {
      if (problem.pick(0, 3) != 0 && !problem.shape.stage_slots.empty()) return;
      std::vector<std::uint32_t> slots;
      for (const StageChoice& stage : stages) slots.push_back(stage.slots);
      if (std::all_of(slots.begin(), slots.end(), [&](auto n) { return may_take(problem.shape, n); }))
        problem.shape.stage_slots = slots;
    });
    check_optimal(problem);
  }
}

TEST_CASE("balanced has the smallest slowest stage of all cuts, and of those with it the shortest messages") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const Problem problem(seed, seed % 2 == 0, false);
    const PipelineCosts costs = problem.costs();
    const auto slowest_and_messages = [&](const std::vector<StageChoice>& stages) {
      std::pair<double, double> result{0, 0};
      for (std::uint32_t s = 0; s < stages.size(); ++s) {
        const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : costs.unit_count();
        const auto cost = costs.stage(stages[s].first_unit, end, s, 1);
        result.first = std::max(result.first, cost.compute_s);
        result.second += cost.messages_s;
      }
      return result;
    };
    std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
    for_all_cuts(costs, [&](const std::vector<StageChoice>& stages) {
      best = std::min(best, slowest_and_messages(stages));
    });
    const auto found = slowest_and_messages(partition_pipeline(StageCut::balanced, costs));
    CHECK(found.first == best.first);
    CHECK(found.second == doctest::Approx(best.second).epsilon(1e-12));
  }
}

TEST_CASE("even gives 11 units to 4 stages as 3, 3, 3, 2") {
  Problem problem(1, false, false);
  problem.model = read_model(parse_yaml(lab::custom_model(11, 1), "model"));
  problem.graph = build_training_graph(problem.model, {});
  problem.units = find_units(problem.graph);
  problem.shape.stages = 4;
  problem.shape.slots = {{0}, {0}, {0}, {0}};
  CHECK(partition_pipeline(StageCut::even, problem.costs()) ==
        std::vector<StageChoice>{{0, 1}, {3, 1}, {6, 1}, {9, 1}});
}

TEST_CASE("costs of a cut chain, counted by hand") {
  // Two layers at 10 TFLOPS: 1 GFLOP + 2 GFLOP = 0.3 ms an image each. 4 micro-batches of 2 images; 10 floats
  // cross: 80 bytes at 1 GB/s and 10 us, both ways. Sum: 2 * 0.6 ms + 2 * 10.08 us; interval 0.6 ms.
  const Model model = read_model(parse_yaml(lab::custom_model(2, 1000), "model"));
  const TrainingGraph graph = build_training_graph(model, {Precision::fp32, Optimizer::momentum});
  Machine machine = build_machine(read_cluster(parse_yaml(lab::star(4, "1GB/s", "10us"), "cluster")), 0);
  const CostModel cost(Precision::fp32);
  const Units units = find_units(graph);
  PipelineShape shape{{{0}, {1}}, 2, 4, 2, PipelineSchedule::gpipe, Recompute::never};
  const StrategyInput input{graph, machine, cost, {}};
  const std::vector<StageChoice> cut{{0, 1}, {1, 1}};
  CHECK(PipelineCosts(input, units, shape).step_s(cut) ==
        doctest::Approx(1.2e-3 + 2 * 10.08e-6 + 3 * 0.6e-3).epsilon(1e-12));
  // 1F1B: the first stage may hold 2, and sees one back 1.2 ms + 20.16 us after it began: an interval of
  // half of that.
  shape.schedule = PipelineSchedule::one_f_one_b;
  CHECK(PipelineCosts(input, units, shape).step_s(cut) ==
        doctest::Approx(1.2e-3 + 2 * 10.08e-6 + 3 * (1.2e-3 + 20.16e-6) / 2).epsilon(1e-12));
  shape.schedule = PipelineSchedule::naive;
  CHECK(PipelineCosts(input, units, shape).step_s(cut) ==
        doctest::Approx(4 * (1.2e-3 + 2 * 10.08e-6)).epsilon(1e-12));
  // Two replicas of each: a ring of two sums 4 kB in 2 * 10 us + 4 us, a quarter of it for each micro-batch.
  shape.slots = {{0, 2}, {1, 3}};
  shape.schedule = PipelineSchedule::gpipe;
  CHECK(PipelineCosts(input, units, shape).step_s(cut) ==
        doctest::Approx(1.2e-3 + 2 * 10.08e-6 + 2 * 6e-6 + 3 * (0.6e-3 + 6e-6)).epsilon(1e-12));
  // Recomputation: forward twice. 0.1 ms more an image and stage.
  shape.slots = {{0}, {1}};
  shape.recompute = Recompute::always;
  CHECK(PipelineCosts(input, units, shape).step_s(cut) ==
        doctest::Approx(1.6e-3 + 2 * 10.08e-6 + 3 * 0.8e-3).epsilon(1e-12));
}

TEST_CASE("a stage gets the tensors from before that it reads, each once, and nothing for a later stage") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Problem problem(seed, true, false);
    const PipelineCosts costs = problem.costs();
    Route way;
    problem.machine.router->route(0, 1, way);
    const double bandwidth_Bps = problem.machine.links[way.links.front()].bandwidth_Bps;
    for (std::uint32_t begin = 1; begin < costs.unit_count(); ++begin)
      for (std::uint32_t end = begin + 1; end <= costs.unit_count(); ++end) {
        CAPTURE(begin);
        CAPTURE(end);
        double bytes = 0, gradient_bytes = 0;
        for (const Units::Tensor& tensor : problem.units.tensors) {
          const bool read = std::any_of(tensor.readers.begin(), tensor.readers.end(),
                                        [&](std::size_t reader) { return begin <= reader && reader < end; });
          if (tensor.producer >= begin || !read) continue;
          bytes += tensor.bytes_per_image;
          if (tensor.has_gradient) gradient_bytes += tensor.bytes_per_image;
        }
        const double expected_s = (bytes + gradient_bytes) * problem.shape.images / bandwidth_Bps +
                                  ((bytes > 0) + (gradient_bytes > 0)) * way.latency_s;
        CHECK(costs.times(begin, end, 1, 1).messages_s == doctest::Approx(expected_s).epsilon(1e-9));
      }
  }
}

TEST_CASE("a cut fits up to exactly what it holds") {
  // A layer of 1000 parameters: weights, gradients and momentum 12 kB. The first stage holds the image, 3072
  // floats, 2 an image, for each of 4 micro-batches under GPipe, and 10 floats of output as an operand.
  const Model model = read_model(parse_yaml(lab::custom_model(2, 1000), "model"));
  const TrainingGraph graph = build_training_graph(model, {Precision::fp32, Optimizer::momentum});
  Machine machine = build_machine(read_cluster(parse_yaml(lab::star(2, "1GB/s", "10us"), "cluster")), 0);
  const CostModel cost(Precision::fp32);
  const Units units = find_units(graph);
  const double image = 3072 * 4, output = 40;
  const auto fits = [&](PipelineSchedule schedule, Recompute recompute, double memory_bytes) {
    machine.device_types[0].memory_bytes = memory_bytes;
    const PipelineShape shape{{{0}, {1}}, 2, 4, 2, schedule, recompute};
    return PipelineCosts({graph, machine, cost, {}}, units, shape).stage(0, 1, 0, 1).fits;
  };
  const std::vector<std::pair<PipelineSchedule, int>> held{
      {PipelineSchedule::naive, 1}, {PipelineSchedule::one_f_one_b, 2}, {PipelineSchedule::gpipe, 4}};
  for (const auto& [schedule, micro_batches] : held) {
    // Its data gradient's operand is the output's gradient alone: custom layers make one for their inputs
    // only where these have one.
    const double needed = 12'000 + 2 * (micro_batches * image + output);
    CHECK(fits(schedule, Recompute::never, needed));
    CHECK_FALSE(fits(schedule, Recompute::never, needed - 1));
  }
}
