// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "strategies/pipeline/pipeline_costs.h"
#include "tests/support/lab.h"

namespace convoy {

/// A random pipeline to be cut: model, machine and shape.
struct PipelineProblem {
  explicit PipelineProblem(unsigned seed, bool branched, bool spread, bool endless = false) : random(seed) {
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

}  // namespace convoy
