// SPDX-License-Identifier: MIT
// Memory by the rules of each framework, counted by hand on small networks.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

#include "models/static_plan.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

TrainingGraph graph_of(const Model& model, Framework framework, Precision precision = Precision::fp32) {
  TrainingOptions options;
  options.framework = framework;
  options.precision = precision;
  return build_training_graph(model, options);
}

/// Bytes of the buffers of a class, the surplus of a memory plan aside, with their operations: those an
/// image, and those for any batch.
using Held = std::map<std::string, std::pair<double, std::int64_t>>;
Held held(const TrainingGraph& graph, MemoryClass memory_class) {
  Held result;
  for (const Buffer& buffer : graph.buffers)
    if (buffer.memory_class == memory_class && buffer.name != "memory plan") {
      CHECK(buffer.born == buffer.dies);
      result[graph.operations[buffer.born].name] = {buffer.bytes_per_image, buffer.bytes_fixed};
    }
  return result;
}

/// A graph of nothing but buffers: {bytes, first, last operation}.
TrainingGraph graph_with(const std::vector<std::array<double, 3>>& buffers) {
  TrainingGraph graph;
  for (const auto& [bytes, born, dies] : buffers) {
    graph.buffers.push_back({"",
                             MemoryClass::activations,
                             bytes,
                             0,
                             static_cast<OpId>(born),
                             static_cast<OpId>(dies),
                             false,
                             {}});
    if (graph.operations.size() <= dies) graph.operations.resize(static_cast<std::size_t>(dies) + 1);
  }
  return graph;
}

}  // namespace

TEST_CASE("MXNet keeps input and result of activations and pooling, without indices") {
  // Every tensor but pool's has 16 values of 4 bytes.
  const Model model = toy("[1, 4, 4]", R"(
  - {name: conv, kind: conv2d, out_channels: 1, kernel: 1}
  - {name: bn, kind: batch_norm}
  - {name: relu, kind: relu}
  - {name: pool, kind: max_pool, kernel: 2}
  - {name: conv2, kind: conv2d, out_channels: 1, kernel: 1}
)");
  // PyTorch: the image, conv's result, relu's in bn's storage, 4 int64 indices, pool's result.
  CHECK(saved_activation_bytes(graph_of(model, Framework::pytorch)) == 3 * 64 + 4 * 8 + 16);
  CHECK(saved_activation_bytes(graph_of(model, Framework::pytorch1)) == 3 * 64 + 4 * 8 + 16);
  // MXNet: the image, the results of conv, bn, relu and pool.
  CHECK(saved_activation_bytes(graph_of(model, Framework::mxnet)) == 4 * 64 + 16);
}

TEST_CASE("PyTorch 1 keeps ReLU6's result in place of its input, and dropout's mask as it is") {
  const Model model = toy("[1, 4, 4]", R"(
  - {name: conv, kind: conv2d, out_channels: 1, kernel: 1}
  - {name: relu, kind: relu6}
  - {name: conv2, kind: conv2d, out_channels: 1, kernel: 1}
)");
  // The image, conv's result for ReLU6's gradient, ReLU6's result for conv2's; in place the last two are one.
  CHECK(saved_activation_bytes(graph_of(model, Framework::pytorch)) == 3 * 64);
  CHECK(saved_activation_bytes(graph_of(model, Framework::pytorch1)) == 2 * 64);
}

TEST_CASE("PyTorch 1 makes a layer's gradient beside the one that it adds it to") {
  const Model model = toy("[8]", "  - {name: fc, kind: linear, out_features: 10}\n");
  CHECK(held(graph_of(model, Framework::pytorch), MemoryClass::gradients).empty());
  CHECK(held(graph_of(model, Framework::pytorch1), MemoryClass::gradients) ==
        Held{{"fc.weight_gradient", {0, 4 * 90}}});
  CHECK(held(graph_of(model, Framework::pytorch1, Precision::fp16), MemoryClass::gradients) ==
        Held{{"fc.weight_gradient", {0, 2 * 90}}});
}

TEST_CASE("MXNet has the weights once more") {
  const Model model = toy("[8]", "  - {name: fc, kind: linear, out_features: 10}\n");
  const auto weights = [&](Framework framework, Precision precision) {
    return graph_of(model, framework, precision).resident_bytes()[0];
  };
  CHECK(weights(Framework::pytorch, Precision::fp32) == 4 * 90);
  CHECK(weights(Framework::mxnet, Precision::fp32) == 2 * 4 * 90);
  CHECK(weights(Framework::mxnet, Precision::fp16) == (2 + 2 + 4) * 90);
}

TEST_CASE(
    "Winograd's workspace is that of 3x3 convolutions of many channels in fp32, while their kernels run") {
  // 14x14 outputs are 4x4 tiles of 4x4; 36 values of 4 bytes a tile and channel, in and out, and a filter.
  const std::pair<double, std::int64_t> bytes{4 * 36 * 16 * (512 + 512), 4 * 36 * 512 * 512};
  const auto model = [](const std::string& keys) {
    return toy("[512, 14, 14]",
               "  - {name: a, kind: conv2d, out_channels: 512, kernel: 1}\n"
               "  - {name: b, kind: conv2d, out_channels: 512, " +
                   keys + "}\n");
  };
  const auto workspace = [&](const std::string& keys, Framework framework, Precision precision) {
    return held(graph_of(model(keys), framework, precision), MemoryClass::workspace);
  };
  const std::string plain = "kernel: 3, padding: 1";
  for (const Framework framework : {Framework::pytorch, Framework::pytorch1})
    CHECK(workspace(plain, framework, Precision::fp32) ==
          Held{{"b.forward", bytes}, {"b.data_gradient", bytes}, {"b.weight_gradient", bytes}});
  CHECK(workspace(plain, Framework::mxnet, Precision::fp32).empty());
  CHECK(workspace(plain, Framework::pytorch, Precision::fp16).empty());
  for (const char* other : {"kernel: 3, padding: 1, stride: 2", "kernel: 3, padding: 1, groups: 2",
                            "kernel: 3, padding: 2, dilation: 2", "kernel: 5, padding: 2"})
    CHECK(workspace(other, Framework::pytorch, Precision::fp32).empty());
}

TEST_CASE(
    "a memory plan reuses free blocks of fitting size, lets smaller ones grow, and else takes new ones") {
  // The second is new, for the first lives; the third fits into the first's block.
  CHECK(planned_bytes(graph_with({{100, 0, 1}, {40, 1, 2}, {80, 2, 2}})) == 140);
  // The third is larger than what is free: the free 40 grow to 60.
  CHECK(planned_bytes(graph_with({{100, 0, 3}, {40, 1, 1}, {60, 2, 3}})) == 160);
  // Of two free blocks it takes the smallest that is large enough.
  CHECK(planned_bytes(graph_with({{100, 0, 1}, {50, 0, 1}, {45, 2, 3}, {90, 3, 3}})) == 150);
  // A block of more than 16 times the size is left alone, as one of less than a 16th.
  CHECK(planned_bytes(graph_with({{170, 0, 0}, {10, 1, 1}})) == 180);
  CHECK(planned_bytes(graph_with({{160, 0, 0}, {10, 1, 1}})) == 160);
  CHECK(planned_bytes(graph_with({{10, 0, 0}, {170, 1, 1}})) == 180);
  CHECK(live_bytes(graph_with({{100, 0, 3}, {40, 1, 1}, {60, 2, 3}})) == 160);
  CHECK(live_bytes(graph_with({{10, 0, 0}, {170, 1, 1}})) == 170);
}

TEST_CASE("a memory plan takes no less than what is live, and the graph's peak is the plan's") {
  constexpr unsigned seed = 7;
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::array<double, 3>> buffers;
    for (int b = 0; b < 30; ++b) {
      const double born = random() % 40, dies = born + random() % 10;
      buffers.push_back({static_cast<double>(1 + random() % 1000), born, dies});
    }
    const TrainingGraph graph = graph_with(buffers);
    CHECK(planned_bytes(graph) >= live_bytes(graph));
  }
  for (const char* name : {"vgg16", "resnet18", "googlenet"}) {
    CAPTURE(name);
    TrainingGraph graph = graph_of(read_model(parse_yaml(name, "model")), Framework::mxnet);
    const double peak = live_bytes(graph);
    std::erase_if(graph.buffers, [](const Buffer& buffer) { return buffer.name == "memory plan"; });
    CHECK(peak == doctest::Approx(planned_bytes(graph)).epsilon(1e-12));
    CHECK(peak > live_bytes(graph));
  }
}

TEST_CASE(
    "no process of a GPU is seen with less than 250 MiB beside its tensors, nor with much more than 1 GiB") {
  constexpr double mib = 1024 * 1024;
  for (std::size_t f = 0; f < framework_count; ++f) {
    CAPTURE(f);
    const FrameworkMemory& memory = framework_memory(static_cast<Framework>(f));
    CHECK(memory.reserved_bytes > 250 * mib);
    CHECK(memory.reserved_bytes < 1100 * mib);
  }
}
