// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "strategies/hypergraph/node_program.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Additions of gradients of layer j, an image, counted node by node: of a node, each part that has readers of it
/// makes one gradient of each of its layers, a layer of which nobody reads it makes zeros at its owner, and all of
/// them but one are added.
double additions(const NodeHypergraph& nodes, const Parts& parts, std::uint32_t j, double values) {
  double sum = 0;
  for (std::size_t b = 0; b < nodes.layers[j].blocks.size(); ++b) {
    std::size_t gradients = 0;
    for (const NodeLayer& reader : nodes.layers) {
      if (!reader.gradient) continue;
      for (const NodeLayer::Input& input : reader.inputs) {
        if (input.layer != j) continue;
        std::set<std::uint32_t> makers;
        for (std::size_t r = 0; r < reader.blocks.size(); ++r)
          if (input.reads[r].first <= b && b < input.reads[r].second)
            makers.insert(parts[reader.blocks[r].vertex]);
        gradients += std::max<std::size_t>(1, makers.size());
      }
    }
    if (gradients > 1)
      sum += values * nodes.layers[j].share(nodes.layers[j].blocks[b]) * static_cast<double>(gradients - 1);
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "of the gradients that parts make of a node, each but one is added once, however nodes are dealt out") {
  for (const std::string model :
       {"vgg16_cifar10", "resnet18", "googlenet", "shufflenet_v2_x1_0", "densenet121"}) {
    const TrainingGraph graph = build_training_graph(read_model(parse_yaml(model, "model")), {});
    const NodeHypergraph nodes = make_hypergraph(graph, {Granularity::Kind::channels, 16}, 4, 0.1);
    for (const std::uint32_t seed : {1, 2, 3}) {
      CAPTURE(model);
      CAPTURE(seed);
      std::mt19937 random(seed);
      const std::uint32_t count = 2 + seed;
      Parts parts(nodes.graph.weight.size());
      // Of the first seed any node may be anywhere, then hardly any is in another part than the one before it.
      for (std::size_t v = 0; v < parts.size(); ++v)
        parts[v] = v > 0 && random() % 8 < 3 * (seed - 1) ? parts[v - 1] : random() % count;
      const PlacedWork work = slice_graph(NodeShares(graph, nodes, parts, count, 2), 1);
      std::map<std::string, double> added;  // by layer
      for (const PlacedDevice& device : work.devices)
        for (const PlacedStep& step : device.steps)
          for (const PlanOp& op : step.ops)
            if (op.name.find("gradient_sum") != std::string::npos)
              added[op.name.substr(0, op.name.rfind('.'))] += op.work.flops_per_image;
      for (std::uint32_t j = 0; j < graph.model.layers.size(); ++j) {
        const Layer& layer = graph.model.layers[j];
        CAPTURE(layer.name);
        const double values = nodes.layers[j].bytes / element_bytes(graph.options.precision);
        if (nodes.layers[j].gradient)
          CHECK(added[layer.name] == approx(additions(nodes, parts, j, values)).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("parts: gradients of outputs stay until their last reader, wherever they were made, by hand") {
  // Part 0 has a and b, part 1 c, their sum and its loss.
  const TrainingGraph graph = build_training_graph(
      read_model(parse_yaml("{name: net, input: [4], loss: cross_entropy, layers: [{name: a, kind: linear, "
                            "out_features: 8}, {name: b, kind: linear, out_features: 8}, {name: c, kind: "
                            "linear, out_features: 8, inputs: [a]}, {name: s, kind: add, inputs: [b, c]}]}",
                            "model")),
      {});
  const NodeHypergraph nodes = make_hypergraph(graph, {Granularity::Kind::layer, 1}, 2, 0.1);
  REQUIRE(nodes.graph.weight.size() == 3);
  PlacedWork work = slice_graph(NodeShares(graph, nodes, {0, 0, 1}, 2, 1), 1);
  std::map<std::string, double> held;  // values, while an operation runs
  for (std::size_t p = 0; p < 2; ++p) {
    std::vector<PlanOp*> program;
    for (PlacedStep& step : work.devices[p].steps)
      for (PlanOp& op : step.ops) program.push_back(&op);
    place_tensors(work.devices[p].tensors, program);
    double values = 0;
    for (const PlanOp* op : program) {
      for (const MemoryDelta& delta : op->allocates)
        if (delta.memory_class == MemoryClass::activations) values += delta.bytes / 4;
      held[op->name] = values;
      for (const MemoryDelta& delta : op->frees)
        if (delta.memory_class == MemoryClass::activations) values -= delta.bytes / 4;
    }
    CHECK(values == 0);
  }
  // Image (4) and a's output (8) for the weights; b's gradient, which has come; what is made of a's, until it is sent
  // or, here, what has come is added to it.
  CHECK(held["b.data_gradient"] == 4 + 8 + 8 + 8);
  CHECK(held["b.weight_gradient"] == 4 + 8 + 8 + 8);
  CHECK(held["a.partial_gradient_sum"] == 4 + 8 + 8);
  CHECK(held["a.weight_gradient"] == 4 + 8);
  // The sum's gradient is c's; a copy of a's output; a's gradient, until it is sent.
  CHECK(held["c.data_gradient"] == 8 + 8 + 8);
  CHECK(held["c.weight_gradient"] == 8 + 8 + 8);
}
