// SPDX-License-Identifier: MIT
// What frameworks move and issue besides where no compiler makes one kernel of it: counted by hand, and
// against published numbers of parameters.
#include <doctest/doctest.h>

#include <string>

#include "models/training_graph.h"
#include "models/unfused_work.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

TrainingGraph unfused_graph(const Model& model, Framework framework,
                            ExecutionMode execution = ExecutionMode::graph) {
  TrainingOptions options;
  options.framework = framework;
  options.execution = execution;
  return build_training_graph(model, options);
}

const Work& unfused_op(const TrainingGraph& graph, const std::string& name) {
  for (const Operation& op : graph.operations)
    if (op.name == name) return op.work;
  FAIL("no operation " << name);
  return graph.operations.front().work;
}

double reordered_bytes(const TrainingGraph& graph) {
  double sum = 0;
  for (const Operation& op : graph.operations) sum += op.work.reordered_bytes;
  return sum;
}

}  // namespace

TEST_CASE("TensorFlow reads and writes every filter of ResNet-50 three times, those of the image twice") {
  // torchvision: 25,557,032 parameters, of them 2,049,000 of the classifier and 53,120 of normalizations;
  // the convolution of the image has 64 x 3 x 7 x 7 weights and no data gradient.
  const double filters = 25'557'032 - 2'049'000 - 53'120, of_image = 64 * 3 * 7 * 7;
  const Model resnet = read_model(parse_yaml("name: resnet50", "network.yaml"));
  for (const Framework framework : {Framework::tensorflow, Framework::tensorflow1})
    CHECK(reordered_bytes(unfused_graph(resnet, framework)) == 2 * 4 * (3 * filters - of_image));
  CHECK(reordered_bytes(unfused_graph(resnet, Framework::pytorch1)) == 0);
  CHECK(reordered_bytes(unfused_graph(resnet, Framework::tensorflow, ExecutionMode::compiled)) == 0);
}

TEST_CASE("TensorFlow's depthwise convolutions take their filters as they are") {
  const Model model =
      toy("[4, 6, 6]", "  - {name: x, kind: conv2d, out_channels: 4, kernel: 3, groups: 4}\n");
  CHECK(reordered_bytes(unfused_graph(model, Framework::tensorflow)) == 0);
}

TEST_CASE("TensorFlow's biases are operations, but where one kernel makes convolution, bias and ReLU") {
  // 8 x 4 x 4 = 128 values leave the first convolution, whose ReLU goes with it in TensorFlow 2, and 8 x 4 x 4 the second.
  const Model model = toy("[4, 6, 6]",
                          "  - {name: first, kind: conv2d, out_channels: 8, kernel: 3}\n"
                          "  - {name: act, kind: relu}\n"
                          "  - {name: second, kind: conv2d, out_channels: 8, kernel: 1}\n"
                          "  - {name: then, kind: relu}\n"
                          "  - {name: none, kind: conv2d, out_channels: 8, kernel: 1, bias: false}\n"
                          "  - {name: flat, kind: flatten}\n"
                          "  - {name: fc, kind: linear, out_features: 10}\n");
  const TrainingGraph plain = unfused_graph(model, Framework::pytorch1);
  for (const Framework framework : {Framework::tensorflow, Framework::tensorflow1}) {
    const TrainingGraph graph = unfused_graph(model, framework);
    const auto added_bytes = [&](const std::string& name) {
      return unfused_op(graph, name).aside_bytes_per_image - unfused_op(plain, name).aside_bytes_per_image;
    };
    const auto added_launches = [&](const std::string& name) {
      return unfused_op(graph, name).launches - unfused_op(plain, name).launches;
    };
    const bool fused = framework == Framework::tensorflow;
    CHECK(added_bytes("first.forward") == (fused ? 0 : 2 * 4 * 128));
    CHECK(added_launches("first.forward") == (fused ? 0 : 1));
    CHECK(added_bytes("first.weight_gradient") == 4 * 128);
    CHECK(added_launches("first.weight_gradient") == 1);
    CHECK(added_bytes("second.forward") == 2 * 4 * 128);  // a window of one pixel is not fused
    CHECK(added_bytes("second.weight_gradient") == 4 * 128);
    CHECK(added_bytes("none.forward") == 0);
    CHECK(added_launches("none.weight_gradient") == 0);
    CHECK(added_bytes("fc.forward") == 2 * 4 * 10);
    CHECK(added_bytes("fc.weight_gradient") == 4 * 10);
    CHECK(added_bytes("second.data_gradient") == 0);
  }
  // Operations that are issued one by one are not rewritten.
  const TrainingGraph eager = unfused_graph(model, Framework::tensorflow, ExecutionMode::eager);
  CHECK(unfused_op(eager, "first.forward").launches == 2);
}

TEST_CASE("the loss of a layer's own weights is operations of its own, and none that a compiler leaves") {
  const auto with = [](const std::string& keys) {
    return toy("[4, 6, 6]",
               "  - {name: a, kind: conv2d, out_channels: 4, kernel: 1}\n  - {name: x, " + keys + "}\n");
  };
  struct Case {
    std::string keys;
    double weights;
  };
  for (const Case& one : {Case{"kind: conv2d, out_channels: 8, kernel: 3", 8 * 4 * 9},
                          Case{"kind: linear, out_features: 5, channels: true", 5 * 4}})
    for (const Framework framework : {Framework::pytorch1, Framework::tensorflow}) {
      CAPTURE(one.keys);
      const TrainingGraph lossless = unfused_graph(with(one.keys), framework);
      const TrainingGraph graph = unfused_graph(with(one.keys + ", l2_loss: true"), framework);
      CHECK(graph.operations.size() == lossless.operations.size());
      const auto added = [&](const std::string& name, auto part) {
        return unfused_op(graph, name).*part - unfused_op(lossless, name).*part;
      };
      // Square reads and writes, Sum reads; then a copy, the square's derivative, a product and a sum.
      CHECK(added("x.forward", &Work::aside_bytes_fixed) == 4 * 3 * one.weights);
      CHECK(added("x.weight_gradient", &Work::aside_bytes_fixed) == 4 * (1 + 2 + 3 + 3) * one.weights);
      CHECK(added("x.forward", &Work::launches) == 3);
      CHECK(added("x.weight_gradient", &Work::launches) == 5);
      CHECK(added("x.data_gradient", &Work::aside_bytes_fixed) == 0);
      const TrainingGraph compiled =
          unfused_graph(with(one.keys + ", l2_loss: true"), framework, ExecutionMode::compiled);
      CHECK(unfused_op(compiled, "x.weight_gradient").aside_bytes_fixed == 0);
    }
}

TEST_CASE(
    "the loss of a layer's own weights reads those of the optimizer, which have 4 bytes in any precision") {
  const Model model =
      toy("[4, 6, 6]", "  - {name: x, kind: conv2d, out_channels: 8, kernel: 3, l2_loss: true}\n");
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
    TrainingOptions options;
    options.precision = precision;
    options.framework = Framework::pytorch;
    const TrainingGraph graph = build_training_graph(model, options);
    CHECK(unfused_op(graph, "x.forward").aside_bytes_fixed == 4 * 3 * 8 * 4 * 9);
    CHECK(unfused_op(graph, "x.weight_gradient").aside_bytes_fixed == 4 * 9 * 8 * 4 * 9);
  }
}

TEST_CASE("what is run again for the backward pass computes the loss of its own weights no second time") {
  const auto recomputed = [](const std::string& key, ExecutionMode execution) {
    std::string layers;
    for (const char* name : {"a", "b", "c"})
      layers += std::string("  - {name: ") + name + ", kind: conv2d, out_channels: 4, kernel: 3, padding: 1" +
                key + "}\n  - {name: " + name + "act, kind: relu}\n";
    TrainingOptions options;
    options.framework = Framework::pytorch;
    options.execution = execution;
    options.recompute = Recomputation::sqrt;
    return build_training_graph(toy("[4, 6, 6]", layers), options);
  };
  for (const ExecutionMode execution : {ExecutionMode::eager, ExecutionMode::compiled}) {
    const TrainingGraph lossless = recomputed("", execution),
                        graph = recomputed(", l2_loss: true", execution);
    std::size_t again = 0;
    REQUIRE(graph.operations.size() == lossless.operations.size());
    for (std::size_t op = 0; op < graph.operations.size(); ++op)
      if (graph.operations[op].again) {
        CHECK(graph.operations[op].work == lossless.operations[op].work);
        ++again;
      }
    CHECK(again > 0);
    CHECK((unfused_op(graph, "a.forward") == unfused_op(lossless, "a.forward")) ==
          (execution == ExecutionMode::compiled));
  }
}

TEST_CASE("the loss of weights that several layers share is counted once") {
  const std::string shared = ", kind: linear, out_features: 4, channels: true, l2_loss: true";
  const TrainingGraph graph = unfused_graph(
      toy("[4, 6, 6]", "  - {name: x" + shared + "}\n  - {name: y" + shared + ", weights_of: x}\n"),
      Framework::pytorch1);
  CHECK(unfused_op(graph, "x.forward").aside_bytes_fixed == 4 * 3 * 4 * 4);
  CHECK(unfused_op(graph, "y.forward").aside_bytes_fixed == 0);
}
