// SPDX-License-Identifier: MIT
// Costs of stages against counts by hand, and against a second, direct count.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/collectives/collectives.h"
#include "sim/replay/replay.h"
#include "tests/strategies/pipeline_problem.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Equal layers of 1000 parameters in a chain, to be cut over devices on a switch.
struct EqualLayers {
  EqualLayers(int layers, int devices)
      : graph(build_training_graph(read_model(parse_yaml(lab::custom_model(layers, 1000), "model")),
                                   {Precision::fp32, Optimizer::momentum})),
        machine(build_machine(read_cluster(parse_yaml(lab::star(devices, "1GB/s", "10us"), "cluster")), 0)),
        units(find_units(graph)) {}

  PipelineCosts costs(const PipelineShape& shape) const { return {{graph, machine, cost, {}}, units, shape}; }

  TrainingGraph graph;
  Machine machine;
  CostModel cost{Precision::fp32};
  Units units;
};

}  // namespace

TEST_CASE("costs of a cut chain, counted by hand") {
  // Two layers at 10 TFLOPS: 1 GFLOP + 2 GFLOP = 0.3 ms an image each. 4 micro-batches of 2 images; 10 floats
  // cross: 80 bytes at 1 GB/s and 10 us, both ways. Sum: 2 * 0.6 ms + 2 * 10.08 us; interval 0.6 ms.
  EqualLayers chain(2, 4);
  PipelineShape shape{{{0}, {1}}, 2, 4, 2, PipelineSchedule::gpipe, Recompute::never};
  const std::vector<StageChoice> cut{{0, 1}, {1, 1}};
  CHECK(chain.costs(shape).step_s(cut) == approx(1.2e-3 + 2 * 10.08e-6 + 3 * 0.6e-3).epsilon(1e-12));
  // 1F1B: the first stage may hold 2, and sees one back 1.2 ms + 20.16 us after it began: an interval of
  // half of that.
  shape.schedule = PipelineSchedule::one_f_one_b;
  CHECK(chain.costs(shape).step_s(cut) ==
        approx(1.2e-3 + 2 * 10.08e-6 + 3 * (1.2e-3 + 20.16e-6) / 2).epsilon(1e-12));
  shape.schedule = PipelineSchedule::naive;
  CHECK(chain.costs(shape).step_s(cut) == approx(4 * (1.2e-3 + 2 * 10.08e-6)).epsilon(1e-12));
  // Two replicas of each: a ring of two sums 4 kB in 2 * 10 us + 4 us, a quarter of it for each micro-batch.
  shape.slots = {{0, 2}, {1, 3}};
  shape.schedule = PipelineSchedule::gpipe;
  CHECK(chain.costs(shape).step_s(cut) ==
        approx(1.2e-3 + 2 * 10.08e-6 + 2 * 6e-6 + 3 * (0.6e-3 + 6e-6)).epsilon(1e-12));
  // Recomputation: forward twice. 0.1 ms more an image and stage.
  shape.slots = {{0}, {1}};
  shape.recompute = Recompute::always;
  CHECK(chain.costs(shape).step_s(cut) == approx(1.6e-3 + 2 * 10.08e-6 + 3 * 0.8e-3).epsilon(1e-12));
}

TEST_CASE("a stage gets the tensors from before that it reads, each once, and nothing for a later stage") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const PipelineProblem problem(seed, true, false);
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
        CHECK(costs.times(begin, end, costs.place(1, 1)).messages_s == approx(expected_s).epsilon(1e-9));
      }
  }
}

TEST_CASE("a stage sends each tensor that later stages read once, and gets the gradients of these") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    PipelineProblem problem(seed, true, false);
    if (problem.machine.devices.size() < 3) continue;
    if (seed % 2 == 0) {  // a branch without parameters has no gradients
      problem.model = read_model(parse_yaml(
          "{name: late, input: [3, 8, 8], layers: ["
          "{name: a, kind: conv_transpose2d, out_channels: 2, kernel: 2, stride: 2}, "
          "{name: b, kind: upsample, scale: 2, inputs: [input]}, {name: c, kind: sigmoid, inputs: [a]}, "
          "{name: d, kind: concat, inputs: [b, c]}, {name: e, kind: conv2d, out_channels: 1, kernel: 1}]}",
          "model"));
      problem.graph = build_training_graph(problem.model, {});
      problem.units = find_units(problem.graph);
    }
    for (Device& device : problem.machine.devices) device.speed = 1e30;  // intervals are those of messages
    const PipelineCosts costs = problem.costs();
    Route way;
    problem.machine.router->route(0, 1, way);
    const double image_s = problem.shape.images / problem.machine.links[way.links.front()].bandwidth_Bps;
    for (std::uint32_t begin = 0; begin < costs.unit_count(); ++begin)
      for (std::uint32_t end = begin + 1; end < costs.unit_count(); ++end) {
        CAPTURE(begin);
        CAPTURE(end);
        // Of an image: what arrives by the stage's own link, what leaves by it, and the gradients of both.
        double in = 0, in_gradients = 0, out = 0, out_gradients = 0;
        for (const Units::Tensor& tensor : problem.units.tensors) {
          const auto made = [&](std::size_t from, std::size_t to) {
            return from <= tensor.producer && tensor.producer < to;
          };
          const auto read = [&](std::size_t from, std::size_t to) {
            return std::any_of(tensor.readers.begin(), tensor.readers.end(),
                               [&](std::size_t reader) { return from <= reader && reader < to; });
          };
          const double bytes = tensor.bytes_per_image, gradient = tensor.has_gradient ? bytes : 0;
          if (made(0, begin) && read(begin, end)) in += bytes, in_gradients += gradient;
          if (made(begin, end) && read(end, costs.unit_count())) out += bytes, out_gradients += gradient;
        }
        const double busiest = begin == 0 ? out : std::max(in + out_gradients, out + in_gradients);
        CHECK(costs.times(begin, end, costs.place(begin == 0 ? 0 : 1, 1)).interval_s ==
              approx(busiest * image_s).epsilon(1e-9));
      }
  }
}

TEST_CASE(
    "a stage takes as long as the slowest of its devices, one by one, and its host and its update do [law]") {
  // The same device alone in its host and one of four, another kind of device, and slower ones of each.
  const Machine machine = build_machine(
      read_cluster(parse_yaml("{name: lab, nodes: [{name: a, server: one}, {name: b, server: four}, {name: "
                              "c, server: other, speed: 0.8}, "
                              "{name: d, server: one, speed: 0.6}], fabric: {kind: switch, bandwidth: "
                              "10Gbps, latency: 20us}, servers: {"
                              "one: {devices: [{device: v100-pcie-16gb}], interconnect: {kind: none}}, "
                              "four: {devices: [{device: v100-pcie-16gb, count: 4}], interconnect: {kind: "
                              "pcie, bandwidth: 12GB/s, latency: "
                              "5us}}, "
                              "other: {devices: [{device: k80, count: 2}], interconnect: {kind: pcie, "
                              "bandwidth: 10GB/s, latency: 5us}}}}",
                              "cluster")),
      0);
  int unlike = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    PipelineProblem problem(seed, true, false, seed % 2 == 0);
    const CostModel cost{Software(problem.graph.options)};
    std::vector<EndpointId> devices(machine.devices.size());
    std::iota(devices.begin(), devices.end(), 0u);
    std::shuffle(devices.begin(), devices.end(), problem.random);
    PipelineShape shape = problem.shape;
    const std::size_t in_slot = problem.pick(0, 1) ? 2 : 1;
    shape.slots.clear();
    for (std::size_t d = 0; d < devices.size(); d += in_slot)
      shape.slots.emplace_back(devices.begin() + static_cast<std::ptrdiff_t>(d),
                               devices.begin() + static_cast<std::ptrdiff_t>(d + in_slot));
    shape.micro_batches = 8;
    shape.stages = static_cast<std::uint32_t>(shape.slots.size());
    const PipelineCosts costs({problem.graph, machine, cost, {}}, problem.units, shape);
    const auto first = static_cast<std::uint32_t>(problem.pick(0, static_cast<int>(shape.slots.size()) - 2));
    for (const std::uint32_t slots : {1u, 2u}) {
      if (!slots_allowed(shape, slots)) continue;
      const auto begin =
          static_cast<std::uint32_t>(problem.pick(0, static_cast<int>(costs.unit_count()) - 1));
      const auto end = static_cast<std::uint32_t>(
          problem.pick(static_cast<int>(begin) + 1, static_cast<int>(costs.unit_count())));
      double compute_s = 0, issue_s = 0, update_s = 0, least_s = 1e9;
      for (std::uint32_t slot = first; slot < first + slots; ++slot)
        for (const EndpointId e : shape.slots[slot]) {
          double device_compute_s = 0, device_issue_s = 0, device_update_s = 0;
          for (const Operation& op : problem.graph.operations) {
            const std::uint32_t unit = problem.units.unit_of[op.layer];
            if (unit == Units::none || unit < begin || unit >= end) continue;
            const bool updates = op.phase == Phase::update;
            const QueuedTime time =
                cost.queued_time(op.work, updates ? 1 : shape.images, machine, machine.devices[e]);
            const double times = op.phase == Phase::forward && recomputes(shape) ? 2 : 1;
            (updates ? device_update_s : device_compute_s) += times * time.device_s;
            if (!updates)
              device_issue_s += times * time.issue_s;
            else if (shape.endless())
              device_issue_s += time.issue_s / static_cast<double>(share_of_update(shape, slots));
          }
          compute_s = std::max(compute_s, device_compute_s);
          issue_s = std::max(issue_s, device_issue_s);
          update_s = std::max(update_s, device_update_s);
          least_s = std::min(least_s, device_compute_s);
        }
      const PipelineCosts::Place place = costs.place(first, slots);
      const PipelineCosts::StageCost stage = costs.times(begin, end, place);
      CHECK(stage.compute_s == approx(compute_s).epsilon(1e-9));
      CHECK(stage.issue_s == approx(issue_s).epsilon(1e-9));
      double parameters = 0;
      for (std::uint32_t unit = begin; unit < end; ++unit) parameters += problem.units.parameters[unit];
      std::vector<EndpointId> summing;
      for (std::uint32_t slot = first; slot < first + slots; ++slot)
        summing.insert(summing.end(), shape.slots[slot].begin(), shape.slots[slot].end());
      // The sum takes what a replay of it alone does.
      const double bytes = 4 * parameters;
      double ring_s = 0;
      if (summing.size() > 1 && parameters > 0) {
        Plan plan = collective_of_all(all_reduce_pattern(AllReduceAlgorithm::ring, summing, machine, bytes),
                                      "sum", bytes, machine);
        plan.roles.front().members = summing;
        ring_s = replay(plan, machine, cost, {}).step_time_s;
      }
      const double sync_s =
          shape.endless() ? (ring_s + update_s) / static_cast<double>(slots * share_of_update(shape, slots))
                          : ring_s / static_cast<double>(shape.micro_batches);
      CHECK(stage.sync_s == approx(sync_s).epsilon(1e-9));
      unlike += least_s < 0.99 * compute_s;
    }
  }
  CHECK(unlike > 10);
}

TEST_CASE("buckets smaller than any layer are sums of a layer each, whatever sums them") {
  // Two layers of 4 kB on four devices: a ring takes 6 x 10 us and 6/4 x 4 us for each.
  EqualLayers chain(2, 4);
  PipelineShape shape{{{0, 1, 2, 3}}, 1, 4, 2, PipelineSchedule::gpipe, Recompute::never};
  shape.sync.bucket_bytes = 512;
  const auto exposed_s = [&](AllReduceAlgorithm algorithm) {
    shape.sync.algorithm = algorithm;
    const PipelineCosts costs = chain.costs(shape);
    return costs.exposed_sum_s(0, 2, costs.place(0, 1));
  };
  CHECK(exposed_s(AllReduceAlgorithm::ring) == approx(2 * 66e-6).epsilon(1e-9));
  // Halving and doubling: 4 x 10 us, and the same bytes.
  CHECK(exposed_s(AllReduceAlgorithm::automatic) == approx(2 * 46e-6).epsilon(1e-9));
}

TEST_CASE("a cut fits up to exactly what it holds") {
  // A layer of 1000 parameters: weights, gradients and momentum 12 kB. The first stage holds the image, 3072
  // floats, 2 an image, for each of 4 micro-batches under GPipe, and 10 floats of output as an operand.
  EqualLayers chain(2, 2);
  const double image = 3072 * 4, output = 40;
  const auto fits = [&](PipelineSchedule schedule, Recompute recompute, double memory_bytes) {
    chain.machine.device_types[0].memory_bytes = memory_bytes;
    const PipelineShape shape{{{0}, {1}}, 2, 4, 2, schedule, recompute};
    return chain.costs(shape).stage(0, 1, 0, 1).fits;
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

TEST_CASE("the largest operands of a stage are those of its own layers") {
  // Gradients of output and input: of the second layer 10 + 1000 floats, of the third 10 + 10. The stage of
  // the last two holds what each of them reads, 10 floats an image, for 4 micro-batches of 2 images.
  EqualLayers chain(4, 2);
  chain.graph = build_training_graph(
      read_model(parse_yaml(
          "{name: c, input: [3, 32, 32], layers: ["
          "{name: a, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: "
          "[1000], "
          "memory_bytes: 0}, "
          "{name: b, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10], "
          "memory_bytes: 0}, "
          "{name: c, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10], "
          "memory_bytes: 0}, "
          "{name: d, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10], "
          "memory_bytes: 0}]}",
          "model")),
      {Precision::fp32, Optimizer::momentum});
  chain.units = find_units(chain.graph);
  const auto fits = [&](double memory_bytes) {
    chain.machine.device_types[0].memory_bytes = memory_bytes;
    const PipelineShape shape{{{0}, {1}}, 2, 4, 2, PipelineSchedule::gpipe, Recompute::never};
    return chain.costs(shape).stage(2, 4, 1, 1).fits;
  };
  const double floats = 10 * 4, needed = 24'000 + 2 * (4 * 2 * floats + 2 * floats);
  CHECK(fits(needed));
  CHECK_FALSE(fits(needed - 1));
}

TEST_CASE("a stage fits where it does on the smallest of its devices, whichever that is") {
  EqualLayers chain(2, 4);
  chain.machine.device_types.push_back(chain.machine.device_types[0]);
  chain.machine.device_types[1].memory_bytes = 1000;
  // Two slots of two pipelines each; both slots are replicas of one stage.
  const PipelineShape shape{{{0, 1}, {2, 3}}, 1, 4, 2, PipelineSchedule::gpipe, Recompute::never};
  const auto fits = [&](EndpointId small) {
    for (EndpointId d = 0; d < 4; ++d) chain.machine.devices[d].type = d == small ? 1 : 0;
    return chain.costs(shape).stage(0, 2, 0, 2).fits;
  };
  CHECK(fits(4));
  for (EndpointId small = 0; small < 4; ++small) {
    CAPTURE(small);
    CHECK_FALSE(fits(small));
  }
}

TEST_CASE("with recomputation a stage keeps what it reads of every micro-batch, and its activations of one") {
  // The second stage has layers 2 and 3: it reads 10 floats of an image and holds those and the 10 between
  // its layers; gradients of a layer's output and input, 10 floats each, are the operands. GPipe: 4
  // micro-batches of 2 images. Weights, gradients and momentum of a layer: 12 kB.
  EqualLayers chain(3, 2);
  const auto fits = [&](Recompute recompute, double memory_bytes) {
    chain.machine.device_types[0].memory_bytes = memory_bytes;
    const PipelineShape shape{{{0}, {1}}, 2, 4, 2, PipelineSchedule::gpipe, recompute};
    return chain.costs(shape).stage(1, 3, 1, 1).fits;
  };
  const double floats = 10 * 4;
  for (const auto& [recompute, kept] :
       {std::pair{Recompute::never, 4 * 2 * floats}, std::pair{Recompute::always, 3 * floats + 2 * floats},
        std::pair{Recompute::except_last, 3 * floats + 2 * floats}}) {
    const double needed = 24'000 + 2 * (kept + 2 * floats);
    CHECK(fits(recompute, needed));
    CHECK_FALSE(fits(recompute, needed - 1));
  }
}
