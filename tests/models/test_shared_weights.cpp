// SPDX-License-Identifier: MIT
// Layers that use the parameters of another: counted once, their gradients added up.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/summary.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

/// A convolution on a map and on the halved map, each of which has an output: with one set of parameters, or two.
std::string pyramid(bool shared, const std::string& more = "") {
  return fmt::format(
      "  - {{name: stem, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}}\n"
      "  - {{name: half, kind: max_pool, kernel: 2}}\n"
      "  - {{name: large, kind: conv2d, inputs: [stem], out_channels: 5, kernel: 3, padding: 1}}\n"
      "  - {{name: small, kind: conv2d, inputs: [half], out_channels: 5, kernel: 3, padding: 1{}}}\n{}",
      shared ? ", weights_of: large" : "", more);
}

TrainingGraph graph_of(const std::string& layers, Framework framework = Framework::pytorch) {
  TrainingOptions options;
  options.framework = framework;
  return build_training_graph(toy("[3, 8, 8]", layers), options);
}

const Operation& operation_of(const TrainingGraph& graph, const std::string& name) {
  const auto found = std::find_if(graph.operations.begin(), graph.operations.end(),
                                  [&](const Operation& op) { return op.name == name; });
  REQUIRE_MESSAGE(found != graph.operations.end(), name);
  return *found;
}

OpId id(const TrainingGraph& graph, const std::string& name) {
  return static_cast<OpId>(&operation_of(graph, name) - graph.operations.data());
}

std::string error_in(const std::string& layers) { return layers_error("[3, 8, 8]", layers); }

}  // namespace

TEST_CASE("parameters that two layers use are counted once, and their work twice") {
  const TrainingGraph one = graph_of(pyramid(true)), two = graph_of(pyramid(false));
  // stem 4*3*9 + 4, convolution 5*4*9 + 5
  CHECK(summarize(one.model).parameters == 112 + 185);
  CHECK(summarize(two.model).parameters == 112 + 2 * 185);
  CHECK(summarize(one.model).parameter_tensors == 4);
  CHECK(summarize(one.model).forward_macs == summarize(two.model).forward_macs);
  CHECK(one.gradient_bytes() == 4 * (112 + 185));
  // what is saved for the backward pass is each use's own
  CHECK(saved_activation_bytes(one) == saved_activation_bytes(two));
  // every kernel of the two but an update, and each reads the weights as before
  CHECK(one.operations.size() + 1 == two.operations.size());
  for (const char* name : {"large.forward", "small.forward", "small.data_gradient", "small.weight_gradient"})
    CHECK(operation_of(one, name).work == operation_of(two, name).work);
}

TEST_CASE(
    "gradients of shared parameters are added up in the order of the backward pass, before one update") {
  const TrainingGraph graph = graph_of(pyramid(true));
  const OpId first = id(graph, "small.weight_gradient"), last = id(graph, "large.weight_gradient");
  CHECK(first < last);
  const std::vector<OpId>& inputs = graph.operations[last].inputs;
  CHECK(std::find(inputs.begin(), inputs.end(), first) != inputs.end());
  std::size_t tensors = 0;
  for (const Parameter& parameter : graph.parameters) {
    if (!parameter.name.starts_with("large.")) continue;
    ++tensors;
    CHECK(parameter.first_use == id(graph, "large.forward"));
    CHECK(parameter.first_gradient == first);
    CHECK(parameter.gradient == last);
    CHECK(parameter.update == id(graph, "large.update"));
  }
  CHECK(tensors == 2);
  // the sum reads two gradients of 185 values and writes one, in a kernel of its own
  const Work &sum = graph.operations[last].work,
             &alone = operation_of(graph_of(pyramid(false)), "large.weight_gradient").work;
  CHECK(sum.aside_bytes_fixed == 3 * 4 * 185);
  CHECK(sum.flops_fixed == alone.flops_fixed + 185);
  CHECK(sum.launches == alone.launches + 1);
  // the second gradient is there until it has been added
  const auto held = std::find_if(graph.buffers.begin(), graph.buffers.end(), [](const Buffer& buffer) {
    return buffer.role == BufferRole::parameter_gradient;
  });
  REQUIRE(held != graph.buffers.end());
  CHECK(held->bytes_fixed == 4 * 185);
  CHECK(held->born == last);
  CHECK(held->dies == last);
}

TEST_CASE("of layers that use the same parameters, the first that runs has them") {
  // written in the other order: the layer that is read first comes first all the same
  const TrainingGraph graph = graph_of(
      "  - {name: late, kind: conv2d, inputs: [early], out_channels: 3, kernel: 1}\n"
      "  - {name: early, kind: conv2d, inputs: [input], out_channels: 3, kernel: 1, weights_of: late}\n");
  CHECK(graph.model.layers[0].name == "early");
  CHECK(graph.model.layers[0].parameter_elements() == 12);
  CHECK(graph.model.layers[1].weights_of == 0);
  CHECK(graph.model.layers[1].parameter_elements() == 0);
  // the same layer twice in a row, as of a recurrent network
  CHECK(id(graph, "late.weight_gradient") < id(graph, "early.weight_gradient"));
  CHECK(graph.parameters.size() == 2);
}

TEST_CASE("a block shares all its parameters, also through another that does") {
  const std::string model =
      "\n  name: toy\n  input: [4, 8, 8]\n  blocks:\n    head:\n      layers:\n"
      "        - {name: conv, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}\n"
      "        - {name: bn, kind: batch_norm}\n        - {name: relu, kind: relu}\n"
      "    tower:\n      layers:\n        - {name: part, block: head, repeat: 2}\n"
      "        - {name: last, kind: conv2d, out_channels: 2, kernel: 1}\n"
      "  layers:\n    - {name: a, block: tower}\n    - {name: small, kind: max_pool, inputs: [input], "
      "kernel: 2}\n"
      "    - {name: b, block: tower, weights_of: a}\n"
      "    - {name: c, block: tower, inputs: [small], weights_of: b}\n";
  const ModelSummary summary = summarize(model_from(model));
  CHECK(summary.parameters == 2 * (4 * 4 * 9 + 4 + 8) + 4 * 2 + 2);
  CHECK(summary.parameter_tensors == 2 * 4 + 2);
  const TrainingGraph graph = build_training_graph(model_from(model), {});
  // three uses: c before b before a
  CHECK(id(graph, "c.last.weight_gradient") < id(graph, "b.last.weight_gradient"));
  CHECK(id(graph, "b.last.weight_gradient") < id(graph, "a.last.weight_gradient"));
  const std::vector<OpId>& inputs = operation_of(graph, "b.part.1.bn.weight_gradient").inputs;
  CHECK(std::find(inputs.begin(), inputs.end(), id(graph, "c.part.1.bn.weight_gradient")) != inputs.end());
}

TEST_CASE("in a block of two inputs each has a name, and copies read the copy before them") {
  const Model model = model_from(
      "\n  name: toy\n  input: [4, 8, 8]\n  blocks:\n    both:\n      layers:\n"
      "        - {name: sum, kind: add, inputs: [input.0, input.1]}\n"
      "        - {name: all, kind: concat, inputs: [input.1, sum]}\n"
      "        - {name: back, kind: conv2d, out_channels: 4, kernel: 1}\n"
      "  layers:\n    - {name: x, kind: relu}\n    - {name: b, block: both, repeat: 2, inputs: [x, "
      "input]}\n");
  const auto inputs = [&](const std::string& name) {
    const auto layer = std::find_if(model.layers.begin(), model.layers.end(),
                                    [&](const Layer& each) { return each.name == name; });
    REQUIRE(layer != model.layers.end());
    return layer->inputs;
  };
  CHECK(inputs("b.0.sum") == std::vector<LayerIndex>{0, image_input});
  CHECK(inputs("b.0.all") == std::vector<LayerIndex>{image_input, 1});
  CHECK(inputs("b.1.sum") == std::vector<LayerIndex>{3, image_input});
  CHECK(inputs("b.1.all") == std::vector<LayerIndex>{image_input, 4});
}

TEST_CASE("what cannot be shared is an error of one line") {
  const auto has = [](const std::string& error, const std::string& text) {
    CAPTURE(error);
    CHECK(error.find(text) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  };
  const std::string conv = "  - {name: a, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}\n";
  has(error_in(conv + "  - {name: b, kind: conv2d, out_channels: 4, kernel: 3, padding: 1, weights_of: a}\n"),
      "weights_of: 'b' and 'a' do not have the same kind, keys and numbers of parameters (148 and 112)");
  has(error_in(conv + "  - {name: b, kind: batch_norm, weights_of: a}\n"),
      "weights_of: 'b' and 'a' do not have");
  has(error_in(conv + "  - {name: b, kind: relu}\n  - {name: c, kind: relu, weights_of: b}\n"),
      "weights_of: layers of kind relu have no parameters");
  has(error_in(
          conv +
          "  - {name: b, kind: batch_norm}\n  - {name: c, kind: batch_norm, frozen: true, weights_of: b}\n"),
      "weights_of: of 'c' and 'b', which have the same parameters, one is frozen and the other is not");
  has(error_in("  - {name: a, kind: batch_norm, weights_of: a}\n"),
      "weights_of: 'a' would have the parameters of itself");
  has(error_in(
          "  - {name: a, kind: batch_norm, weights_of: b}\n  - {name: b, kind: batch_norm, weights_of: a}\n"),
      "would have the parameters of itself");
  has(error_in("  - {name: norm, kind: batch_norm}\n  - {name: b, kind: batch_norm, weights_of: norn}\n"),
      "weights_of: 'norn' is not a layer (did you mean 'norm'?); it names another entry with `kind`");
  has(error_in(conv + "  - {name: b, kind: batch_norm, weights_of: ''}\n"), "weights_of: expected a name");
  const auto with_blocks = [](const std::string& layers) {
    return error_of(
        "\n  name: toy\n  input: [4, 8, 8]\n  blocks:\n    one:\n      arguments: {deep: false}\n      "
        "layers:\n"
        "        - {name: conv, kind: conv2d, out_channels: 4, kernel: 1}\n"
        "        - {name: more, kind: conv2d, when: $deep, out_channels: 4, kernel: 1}\n"
        "    other:\n      layers:\n        - {name: conv, kind: conv2d, out_channels: 4, kernel: 1}\n"
        "  layers:\n" +
        layers);
  };
  has(with_blocks("    - {name: a, block: one}\n    - {name: b, block: other, weights_of: a}\n"),
      "weights_of: 'a' is not an entry with `block: other`");
  has(with_blocks("    - {name: a, block: one}\n    - {name: b, block: one, deep: true, weights_of: a}\n"),
      "weights_of: there is no layer 'a.more', whose parameters 'b.more' would have");
  CHECK(with_blocks("    - {name: a, block: one, deep: true}\n    - {name: b, block: one, weights_of: a}\n")
            .empty());
}
