// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "models/layer_costs.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

std::string operation_names(const TrainingGraph& graph) {
  std::string text;
  for (const Operation& op : graph.operations) text += op.name + " ";
  return text;
}

const Operation& operation(const TrainingGraph& graph, const std::string& name) {
  const auto it = std::find_if(graph.operations.begin(), graph.operations.end(),
                               [&](const Operation& op) { return op.name == name; });
  REQUIRE_MESSAGE(it != graph.operations.end(), name);
  return *it;
}

double total_flops(const TrainingGraph& graph) {
  double sum = 0;
  for (const Operation& op : graph.operations) sum += op.work.flops_per_image + op.work.flops_fixed;
  return sum;
}

const char* const two_convolutions = R"(
  - {name: conv1, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out_channels: 2, kernel: 3, padding: 1, bias: false}
)";

}  // namespace

TEST_CASE("operations come in execution order: forward, backward mirrored, updates") {
  const TrainingGraph graph = build_training_graph(toy("[3, 8, 8]", two_convolutions), {});
  CHECK(operation_names(graph) ==
        "conv1.forward relu1.forward conv2.forward conv2.data_gradient conv2.weight_gradient "
        "relu1.data_gradient "
        "conv1.weight_gradient conv1.update conv2.update ");
  CHECK(operation(graph, "conv2.weight_gradient").inputs == std::vector<OpId>{1, 2});
  CHECK(operation(graph, "relu1.data_gradient").inputs == std::vector<OpId>{1, 3});
  CHECK(operation(graph, "conv1.weight_gradient").inputs == std::vector<OpId>{5});
  CHECK(operation(graph, "conv1.update").inputs == std::vector<OpId>{6});
}

TEST_CASE("a convolution's gradients each cost its forward pass, and the first layer has no data gradient") {
  const TrainingGraph graph = build_training_graph(toy("[3, 8, 8]", two_convolutions), {});
  const Work forward = operation(graph, "conv2.forward").work;
  // 2 * (2 * 8*8) outputs * 4*3*3; traffic: 4*64 in + 2*64 out values and 2*4*9 weights of 4 bytes
  CHECK(forward.flops_per_image == 2 * 128 * 36);
  CHECK(forward.bytes_per_image == 4 * (256 + 128));
  CHECK(forward.bytes_fixed == 4 * 72);
  CHECK(forward.kind == KernelKind::convolution);
  CHECK(forward.in_channels == 4);
  CHECK(forward.out_channels == 2);
  CHECK(forward.kernel_h == 3);
  CHECK(forward.stride == 1);
  CHECK(forward.out_w == 8);
  for (const char* name : {"conv2.data_gradient", "conv2.weight_gradient"}) {
    const Work& work = operation(graph, name).work;
    CHECK(work.flops_per_image == forward.flops_per_image);
    CHECK(work.bytes_per_image == forward.bytes_per_image);
  }
  for (const Operation& op : graph.operations) CHECK(op.name != "conv1.data_gradient");
}

TEST_CASE("parameters know their first use, gradient and update") {
  const TrainingGraph graph = build_training_graph(toy("[3, 8, 8]", two_convolutions), {});
  REQUIRE(graph.parameters.size() == 3);
  CHECK(graph.parameters[1].name == "conv1.bias");
  CHECK(graph.parameters[1].elements == 4);
  CHECK(graph.parameters[2].name == "conv2.weight");
  CHECK(graph.parameters[2].first_use == 2);
  CHECK(graph.parameters[2].gradient == 4);
  CHECK(graph.parameters[2].update == 8);
  CHECK(graph.gradient_bytes() == 4 * (108 + 4 + 72));
}

TEST_CASE("a network of custom layers costs exactly what it states") {
  const Model model = toy("[3, 8, 8]", R"(
  - {name: a, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10], memory_bytes: 64}
  - {name: b, kind: custom, forward_flops: 3e9, backward_flops: 5e9, output: [10], inputs: [a]}
  - {name: c, kind: custom, forward_flops: 7e9, backward_flops: 9e9, output: [10], inputs: [a, b]}
)");
  const TrainingGraph graph = build_training_graph(model, {Precision::fp32, Optimizer::adam});
  CHECK(operation_names(graph) ==
        "a.forward b.forward c.forward c.data_gradient b.data_gradient a.data_gradient "
        "a.weight_gradient a.update ");
  CHECK(total_flops(graph) == 27e9);
  CHECK(operation(graph, "a.data_gradient").work.flops_per_image == 1e9);
  CHECK(operation(graph, "a.weight_gradient").work.flops_per_image == 1e9);
  double bytes = 0;
  for (const Operation& op : graph.operations) bytes += op.work.bytes_per_image + op.work.bytes_fixed;
  CHECK(bytes == 2 * 64);
  // c's gradient for a comes first; b's is added to it at no cost, so b's data gradient waits for c's
  CHECK(operation(graph, "b.data_gradient").inputs == std::vector<OpId>{0, 3});
}

TEST_CASE("a tensor with several readers has its gradients added up, once a reader after the first") {
  const Model model = toy("[4, 2, 2]", R"(
  - {name: stem, kind: conv2d, out_channels: 4, kernel: 1}
  - {name: a, kind: conv2d, out_channels: 4, kernel: 1, inputs: [stem]}
  - {name: b, kind: conv2d, out_channels: 4, kernel: 1, inputs: [stem]}
  - {name: add, kind: add, inputs: [stem, a, b]}
)");
  const TrainingGraph graph = build_training_graph(model, {});
  CHECK(operation_names(graph) ==
        "stem.forward a.forward b.forward add.forward b.data_gradient stem.gradient_sum b.weight_gradient "
        "a.data_gradient stem.gradient_sum2 a.weight_gradient stem.weight_gradient stem.update a.update "
        "b.update ");
  const Work& sum = operation(graph, "stem.gradient_sum").work;
  CHECK(sum.phase == Phase::data_gradient);
  CHECK(sum.kind == KernelKind::elementwise);
  CHECK(sum.flops_per_image == 16);
  CHECK(sum.bytes_per_image == 3 * 4 * 16);
}

TEST_CASE("a product's gradient is the gradient times the other input, for both") {
  const Model model = toy("[4, 3, 5]", R"(
  - {name: a, kind: conv2d, out_channels: 4, kernel: 1}
  - {name: b, kind: sigmoid}
  - {name: product, kind: multiply, inputs: [a, b]}
)");
  const LayerCosts costs = layer_costs(model, 2);
  const double values = 4 * 3 * 5;
  REQUIRE(costs.forward);
  CHECK(costs.forward->flops == values);
  CHECK(costs.forward->values == 3 * values);  // two read, one written
  REQUIRE(costs.data_gradient);
  CHECK(costs.data_gradient->flops == 2 * values);
  CHECK(costs.data_gradient->values == 5 * values);  // gradient and both inputs read, two gradients written
  CHECK_FALSE(costs.weight_gradient);
}

TEST_CASE("kernels of their own move what a compiler would fuse: products before sums, means and casts") {
  const Model model = toy("[4, 3, 5]", R"(
  - {name: a, kind: conv2d, out_channels: 4, kernel: 1}
  - {name: b, kind: adaptive_avg_pool}
  - {name: gate, kind: sigmoid}
  - {name: excited, kind: multiply, inputs: [a, gate]}
  - {name: same, kind: multiply, inputs: [excited, a]}
)");
  const double pixels = 3 * 5, channels = 4, values = channels * pixels;
  const auto bytes = [&](Framework framework, ExecutionMode execution, Precision precision,
                         const char* name) {
    TrainingOptions options;
    options.framework = framework;
    options.execution = execution;
    options.precision = precision;
    return operation(build_training_graph(model, options), name).work.bytes_per_image;
  };
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const double element = element_bytes(precision);
    const bool casts = precision == Precision::fp16;  // into four bytes and out of them
    for (const Framework framework : {Framework::pytorch, Framework::tensorflow}) {
      const bool tensorflow = framework == Framework::tensorflow;
      CAPTURE(to_string(framework));
      for (const ExecutionMode execution : {ExecutionMode::eager, ExecutionMode::graph}) {
        // The larger input's gradient: gradient and gate read, one written. The gate's: gradient and larger
        // input read, their product written, cast where sums are kept in single precision, read and summed
        // up.
        CHECK(bytes(framework, execution, precision, "excited.data_gradient") ==
              element * (values + channels + values) + element * (4 * values + channels) +
                  (tensorflow && casts ? 8 * values : 0));
        CHECK(bytes(framework, execution, precision, "b.forward") ==
              element * (values + channels) + (tensorflow && casts ? 8 * values : 0));
        CHECK(bytes(framework, execution, precision, "b.data_gradient") ==
              element * (values + channels) + (tensorflow ? 2 * element * values : 0));
        CHECK(bytes(framework, execution, precision, "same.data_gradient") == element * 5 * values);
      }
      CHECK(bytes(framework, ExecutionMode::compiled, precision, "excited.data_gradient") ==
            element * (values + 2 * (values + channels)));
      CHECK(bytes(framework, ExecutionMode::compiled, precision, "b.forward") ==
            element * (values + channels));
    }
  }
}

TEST_CASE("views cost nothing and hand their gradient on") {
  const Model model = toy("[4, 2, 2]", R"(
  - {name: conv, kind: conv2d, out_channels: 4, kernel: 1}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: linear, out_features: 3}
)");
  const TrainingGraph graph = build_training_graph(model, {});
  CHECK(operation_names(graph) ==
        "conv.forward fc.forward fc.data_gradient fc.weight_gradient conv.weight_gradient conv.update "
        "fc.update ");
  CHECK(operation(graph, "fc.forward").inputs == std::vector<OpId>{0});
  CHECK(operation(graph, "conv.weight_gradient").inputs == std::vector<OpId>{2});
}

TEST_CASE("the loss is an operation of each output where the model asks for it") {
  Model model = toy("[8]", "  - {name: fc, kind: linear, out_features: 3}\n");
  model.cross_entropy_loss = true;
  const TrainingGraph graph = build_training_graph(model, {});
  CHECK(operation_names(graph) ==
        "fc.forward fc.loss.forward fc.loss.data_gradient fc.weight_gradient fc.update ");
  CHECK(operation(graph, "fc.loss.forward").work.kind == KernelKind::softmax_loss);
  CHECK(saved_activation_bytes(graph) == 4 * 8);  // the image
}

TEST_CASE("saved activations are those counted by hand") {
  const Model model = toy("[3, 8, 8]", R"(
  - {name: conv, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}
  - {name: bn, kind: batch_norm}
  - {name: relu, kind: relu}
  - {name: pool, kind: max_pool, kernel: 2}
  - {name: flatten, kind: flatten}
  - {name: drop, kind: dropout}
  - {name: fc, kind: linear, out_features: 10}
)");
  // image 192, bn's input 256, relu's result in bn's output 256 (also pool's input), dropout's mask 64, fc's
  // input 64 values of 4 bytes; 64 indices of 8
  const double fp32 = 4 * (192 + 256 + 256 + 64 + 64) + 8 * 64;
  CHECK(saved_activation_bytes(build_training_graph(model, {})) == fp32);
  // fp16: activations 2 bytes, mask and indices as they are
  const TrainingOptions half{Precision::fp16, Optimizer::sgd};
  CHECK(saved_activation_bytes(build_training_graph(model, half)) ==
        2 * (192 + 256 + 256 + 64) + 4 * 64 + 8 * 64);
}

TEST_CASE("relu overwrites its input only where nothing else reads it") {
  const char* const conv = "  - {name: conv, kind: conv2d, out_channels: 1, kernel: 1}\n";
  const auto buffers = [&](const std::string& rest) {
    std::map<std::string, double> bytes;
    for (const Buffer& buffer : build_training_graph(toy("[1, 4, 4]", conv + rest), {}).buffers)
      if (buffer.name.ends_with(".output")) bytes[buffer.name] = buffer.bytes_per_image;
    return bytes;
  };
  using Bytes = std::map<std::string, double>;
  CHECK(buffers("  - {name: r, kind: relu}\n") == Bytes{{"conv.output", 64}});
  CHECK(buffers("  - {name: f, kind: flatten}\n  - {name: r, kind: relu}\n") == Bytes{{"conv.output", 64}});
  CHECK(buffers("  - {name: r, kind: relu}\n  - {name: s, kind: sigmoid, inputs: [conv]}\n")
            .contains("r.output"));
  CHECK(buffers("  - {name: f, kind: flatten}\n  - {name: s, kind: sigmoid, inputs: [conv]}\n"
                "  - {name: r, kind: relu, inputs: [f]}\n")
            .contains("r.output"));
  CHECK(buffers("  - {name: s, kind: sigmoid}\n  - {name: r, kind: relu}\n").contains("r.output"));
}

TEST_CASE("a grouped convolution with one input channel a group is depthwise") {
  const Model model = toy("[4, 8, 8]",
                          "  - {name: c, kind: conv2d, out_channels: 8, kernel: 3, groups: 4}\n"
                          "  - {name: d, kind: conv2d, out_channels: 8, kernel: 3, groups: 4}\n");
  const TrainingGraph graph = build_training_graph(model, {});
  CHECK(operation(graph, "c.forward").work.kind == KernelKind::depthwise_convolution);
  CHECK(operation(graph, "d.forward").work.kind == KernelKind::convolution);
}

TEST_CASE("resident bytes are weights, gradients and optimizer state by precision") {
  const Model model = toy("[8]", "  - {name: fc, kind: linear, out_features: 10}\n");  // 90 parameters
  const auto resident = [&](Precision precision, Optimizer optimizer) {
    const auto bytes = build_training_graph(model, {precision, optimizer}).resident_bytes();
    CHECK(bytes[3] + bytes[4] + bytes[5] == 0);
    return std::array<double, 3>{bytes[0] / 90, bytes[1] / 90, bytes[2] / 90};
  };
  CHECK(resident(Precision::fp32, Optimizer::sgd) == std::array<double, 3>{4, 4, 0});
  CHECK(resident(Precision::tf32, Optimizer::momentum) == std::array<double, 3>{4, 4, 4});
  CHECK(resident(Precision::fp16, Optimizer::adam) == std::array<double, 3>{6, 2, 8});
}

TEST_CASE("an update reads gradient, weights and state and writes weights and state") {
  const Model model = toy("[8]", "  - {name: fc, kind: linear, out_features: 10}\n");  // 90 parameters
  const auto bytes = [&](Precision precision, Optimizer optimizer) {
    return build_training_graph(model, {precision, optimizer}).operations.back().work.bytes_fixed / 90;
  };
  CHECK(bytes(Precision::fp32, Optimizer::sgd) == 12);
  CHECK(bytes(Precision::fp32, Optimizer::momentum) == 20);
  CHECK(bytes(Precision::fp32, Optimizer::adam) == 28);
  // fp32 master weights read and written 8, gradient 2, weights 2, two moments read and written 16
  CHECK(bytes(Precision::bf16, Optimizer::adam) == 28);
}
