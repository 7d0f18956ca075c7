// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/base/input_error.h"
#include "strategies/pardnn/networks/networks.h"
#include "tests/support/approx.h"
#include "topologies/device.h"

using namespace convoy;

namespace {

double flops(const OperationNetwork& network, KernelKind kind) {
  double sum = 0;
  for (const auto& node : network.nodes)
    if (node.work.kind == kind) sum += node.work.flops_per_image;
  return sum;
}

std::size_t count(const OperationNetwork& network, const std::string& part) {
  return static_cast<std::size_t>(
      std::count_if(network.nodes.begin(), network.nodes.end(),
                    [&](const auto& node) { return node.name.find(part) != std::string::npos; }));
}

const OperationNetwork::Node& named(const OperationNetwork& network, const std::string& name) {
  return *std::find_if(network.nodes.begin(), network.nodes.end(),
                       [&](const auto& node) { return node.name == name; });
}

DeviceType roofline() {
  const YamlNode node = parse_yaml(
      "{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: "
      "5us, "
      "idle_power: 50W, peak_power: 250W}",
      "device.yaml");
  return read_device(node, "roofline");
}

constexpr double depth = 3, steps = 5, hidden = 64, words = 1000;
OperationNetwork grid() { return recurrent_network({3, 5, hidden, words, {}}, Optimizer::adam, true); }

}  // namespace

TEST_CASE("operation networks: parameters of an LSTM grid are those of its layers, tables and outputs") {
  // A cell: [x, h] of 2 hidden values by 4 hidden ones, and a bias.
  const double cells = depth * (2 * hidden * 4 * hidden + 4 * hidden);
  CHECK(grid().parameters() == words * hidden + cells + hidden * words + words);
}

TEST_CASE("operation networks: products of a step are three times those of the forward pass") {
  const double forward = steps * (depth * 2 * 2 * hidden * 4 * hidden + 2 * hidden * words);
  CHECK(flops(grid(), KernelKind::matmul) == approx(3 * forward).epsilon(1e-12));
}

TEST_CASE("operation networks: a cell has the 14 operations of TensorFlow's BasicLSTMCell") {
  const OperationNetwork network = grid();
  std::size_t forward = 0;
  for (const auto& node : network.nodes)
    if (node.name.starts_with("lstm1.2.") && node.name.find("gradient") == std::string::npos) ++forward;
  CHECK(forward == 14);
}

TEST_CASE(
    "operation networks: steps share weights, whose gradients one operation adds up before one update") {
  const OperationNetwork network = grid();
  CHECK(count(network, "lstm1.kernel.gradient_sum") == 1);
  CHECK(named(network, "lstm1.kernel.gradient_sum").inputs.size() == 5);
  CHECK(count(network, "lstm1.kernel.update") == 1);
  // Clipping waits for the gradients of all variables: a table, three kernels and biases, two of the output.
  CHECK(named(network, "global_norm").inputs.size() == 9);
}

TEST_CASE(
    "operation networks: inputs come before their operations, and all but updates and the last states are "
    "read") {
  for (const OperationNetwork& network :
       {grid(), transformer_network({2, 4, 16, 64, 256, 100}, Optimizer::sgd, false),
        video_network({2, 8, 16, 1, 4, 2, 5, 2, 5}, Optimizer::sgd, false)}) {
    std::vector<int> readers(network.nodes.size(), 0);
    for (NodeId id = 0; id < network.nodes.size(); ++id)
      for (const NodeId input : network.nodes[id].inputs) {
        REQUIRE(input < id);
        ++readers[input];
      }
    for (NodeId id = 0; id < network.nodes.size(); ++id) {
      CAPTURE(network.nodes[id].name);
      CHECK((readers[id] > 0 || network.nodes[id].name.ends_with(".update")));
    }
  }
}

TEST_CASE("operation networks: parameters and products of a transformer by hand") {
  const double n = 2, h = 64, f = 256, v = 100, length = 16;
  const OperationNetwork network = transformer_network({2, 4, 16, h, f, v}, Optimizer::sgd, false);
  const double encoder = 4 * h * h + 2 * h * f + 2 * h, decoder = 8 * h * h + 2 * h * f + 3 * h;
  CHECK(network.parameters() == 2 * v * h + h * v + n * (encoder + decoder) + 2 * h);
  // Each matrix is multiplied with every token; scores and mixtures are length by length by h, each of 3 n.
  const double matrices = network.parameters() - 2 * v * h - n * 5 * h - 2 * h;
  const double forward = 2 * length * matrices + 3 * n * 2 * (2 * length * length * h);
  CHECK(flops(network, KernelKind::matmul) == approx(3 * forward).epsilon(1e-12));
}

TEST_CASE("operation networks: on a roofline operations take a launch and what they compute or move") {
  const OperationNetwork network = grid();
  const Dag dag = operation_network_dag(network, 8, Software(Precision::fp32), roofline());
  const auto id = static_cast<NodeId>(&named(network, "lstm0.0.matmul") - network.nodes.data());
  // 128 by 256 for 8 samples: 0.05 us of FLOPs, 0.29 us of bytes at 500 GB/s.
  const double bytes = 4 * (8 * (128 + 256) + 128 * 256);
  CHECK(dag.time_us(id) == approx(5 + bytes / 5e5).epsilon(1e-12));
  CHECK(dag.output_bytes(id) == 4 * 8 * 256);
  double state = 0;
  for (NodeId v = 0; v < dag.size(); ++v) state += dag.memory_bytes(v);
  CHECK(state == approx(3 * 4 * network.parameters()));  // Adam's two moments
}

TEST_CASE("operation networks: as long as its layers and steps together, not as their product") {
  // With enough parts and free messages the way through a grid goes along one edge: twice the layers at equal
  // steps add less than a third to (layers + steps), where the work doubles.
  const auto way = [](int depth) {
    const OperationNetwork network = recurrent_network({depth, 24, 64, 100, {}}, Optimizer::sgd, false);
    const Dag dag = operation_network_dag(network, 8, Software(Precision::fp32), roofline());
    const std::vector<double> levels = bottom_levels(dag);
    return std::pair(*std::max_element(levels.begin(), levels.end()), dag.total_time_us());
  };
  const auto [short_way, less] = way(6);
  const auto [long_way, more] = way(12);
  CHECK(long_way / short_way < 1.33);
  CHECK(more / less > 1.9);
}

TEST_CASE("operation networks: spelled words take the convolutions' widths") {
  const CharacterLayers characters{26, 8, 4, {1, 3}, {10, 20}, 1};
  const OperationNetwork network = recurrent_network({1, 2, 16, 50, characters}, Optimizer::sgd, false);
  const double convolutions = 1 * 4 * 10 + 10 + 3 * 4 * 20 + 20, highway = 2 * (30 * 30 + 30);
  const double cell = (30 + 16) * 64 + 64;
  CHECK(network.parameters() == 26 * 4 + convolutions + highway + cell + 16 * 50 + 50);
  // Two words of 8 and 6 places, forward and both gradients.
  CHECK(flops(network, KernelKind::convolution) == 3 * 2 * (2 * 8 * 4 * 10 + 2 * 6 * 3 * 4 * 20));
}

TEST_CASE("operation networks: a wide ResNet-101 has torchvision's parameters and products") {
  // wide_resnet101_2: 126,886,696 parameters and 22.75 G multiply-adds for 224 pixels (torchvision's
  // documentation).
  const OperationNetwork network =
      residual_network({{3, 4, 23, 3}, 2, 224, 1000}, Optimizer::momentum, false);
  CHECK(network.parameters() == 126'886'696);
  double forward = 0, backward = 0;
  for (const auto& node : network.nodes)
    if (node.work.kind == KernelKind::convolution || node.work.kind == KernelKind::matmul)
      (node.work.phase == Phase::forward ? forward : backward) += node.work.flops_per_image;
  CHECK(forward / 2 == approx(22.75e9).epsilon(1e-3));
  // The first convolution needs no gradient of the images.
  const double first = named(network, "stem.convolution").work.flops_per_image;
  CHECK(first == 2 * 112.0 * 112 * 64 * 3 * 49);
  CHECK(backward == approx(2 * forward - first).epsilon(1e-12));
}

TEST_CASE("operation networks: a residual block's input has the gradients of both ways added up") {
  const OperationNetwork network = residual_network({{1, 2, 1, 1}, 3, 64, 10}, Optimizer::sgd, false);
  // Two readers of the block's input: the first convolution and the sum, or the convolution beside.
  CHECK(count(network, "stage2.0.relu.gradient_sum") == 1);
  CHECK(named(network, "stage2.0.relu.gradient_sum").inputs.size() == 2);
  CHECK(count(network, ".beside.convolution.gradient") == 2 * 4);
  CHECK(named(network, "stage2.0.spatial.convolution").elements_per_sample == 3 * 128 * 8 * 8);
  CHECK(count(network, ".update") == count(network, ".kernel.update") + count(network, ".scale.update") + 1);
}

TEST_CASE("operation networks: parameters and products of a video network by hand") {
  const double h = 8, c = 16, side = 4, taps = 2 * 5 * 5, layers = 3, steps = 5;  // six frames
  const OperationNetwork network = video_network({3, 8, 16, 1, 4, 2, 6, 2, 5}, Optimizer::adam, false);
  const auto of_layer = [&](double in) {
    const double gates = taps * (in * 7 * h + h * 4 * h + h * 3 * h + 2 * h * h) + 2 * h * h;
    const double biases = (7 + 4 + 3 + 1 + 1 + 1) * h, norms = 2 * (7 + 4 + 3 + 1) * h;
    return gates + biases + norms;
  };
  CHECK(network.parameters() == of_layer(c) + (layers - 1) * of_layer(h) + 2 * h * c + c);
  // Forward: every convolution at 2 x 4 x 4 places but for the last, at 4 x 4; attention over all cells so far.
  const double places = 2 * side * side;
  double convolved = 0, attended = 0;
  for (int step = 0; step < steps; ++step) {
    for (int l = 0; l < layers; ++l) {
      const double in = l == 0 ? c : h;
      convolved += 2 * places * (taps * (in * 7 * h + h * 4 * h + h * 3 * h + 2 * h * h) + 2 * h * h);
      attended += 2 * 2 * places * h * (step + 1) * places;
    }
    convolved += 2 * side * side * 2 * h * c;
  }
  const auto forward = [&](KernelKind kind) {
    double sum = 0;
    for (const auto& node : network.nodes)
      if (node.work.kind == kind && node.work.phase == Phase::forward) sum += node.work.flops_per_image;
    return sum;
  };
  CHECK(forward(KernelKind::convolution) == approx(convolved).epsilon(1e-12));
  CHECK(forward(KernelKind::matmul) == approx(attended).epsilon(1e-12));
  // A predicted frame is the next one's input: its gradient comes back from there, and from the loss.
  CHECK(count(network, "frame.3.gradient_sum") == 1);
  CHECK(count(network, "image.") == 2);
  // The memory of a step goes through all layers, then to the first layer of the next step.
  const auto& kept = named(network, "layer0.1.memory_kept");
  const auto memory = static_cast<NodeId>(&named(network, "layer2.0.memory_new") - network.nodes.data());
  CHECK(std::count(kept.inputs.begin(), kept.inputs.end(), memory) == 1);
  // The cells of all steps before are recalled.
  CHECK(named(network, "layer1.4.history").elements_per_sample == 5 * places * h);
}

TEST_CASE("operation networks: files are read strictly") {
  const auto error = [](const std::string& text) -> std::string {
    try {
      read_operation_network(parse_yaml(text, "net.yaml"));
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "";
  };
  CHECK(error("{network: {kind: recurrent, layers: 2, steps: 3, hidden: 8, vocabulary: 9, heads: 2}, "
              "device: v100-sxm2-32gb, batch: 1, optimizer: adam}")
            .find("network.heads") != std::string::npos);
  for (const auto& [keys, told] :
       {std::pair{"side: 30", "network.patch: side (30) is not a multiple of patch (4)"},
        std::pair{"given: 21", "network.given: 21 given frames, of 20 in all"}})
    CHECK(error(fmt::format(
                    "{{network: {{kind: video, layers: 1, hidden: 8, {}}}, device: v100-sxm2-32gb, batch: 1, "
                    "optimizer: adam}}",
                    keys))
              .ends_with(told));
  CHECK(
      error("{network: {kind: lstm}, device: v100-sxm2-32gb, batch: 1, optimizer: adam}").find("recurrent") !=
      std::string::npos);
  CHECK(error("{network: {kind: recurrent, layers: 0, steps: 3, hidden: 8, vocabulary: 9}, "
              "device: v100-sxm2-32gb, batch: 1, optimizer: adam}")
            .find(": network.layers: ") != std::string::npos);
  CHECK(
      error("{network: {kind: recurrent, layers: 200, steps: 501, hidden: 8, vocabulary: 9}, "
            "device: v100-sxm2-32gb, batch: 1, optimizer: adam}") ==
      "net.yaml:1:49: network.steps: 200 layers of 501 steps are 100200 cells; at most 100000, so 500 steps");
}

TEST_CASE("operation networks: without a name they are called as their file") {
  CHECK(read_operation_network(
            parse_yaml("{network: {kind: recurrent, layers: 1, steps: 2, hidden: 8, vocabulary: 9}, "
                       "device: v100-sxm2-32gb, batch: 1, optimizer: adam}",
                       "nets/small.yaml"))
            .name == "small");
}
