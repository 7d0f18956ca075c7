// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline strategies {
namespace {

using Value = OperationTape::Value;

/// A layer's weights and state.
struct LstmLayer {
  std::string name;
  Value kernel, bias, h, c;
};

/// One LSTM cell, operation by operation as TensorFlow 1's BasicLSTMCell has them; returns the new h. Their
/// names and number are those of the graph of the authors of ParDNN (ParCoreLab/pardnn,
/// rnn/vanilla_cleaned.place).
Value lstm_cell(OperationTape& tape, LstmLayer& layer, Value x, double inputs, double hidden, int step) {
  const auto named = [&](const char* operation) {
    return fmt::format("{}.{}.{}", layer.name, step, operation);
  };
  const Value both = tape.concat(named("concat"), {x, layer.h});
  const Value product = tape.product(named("matmul"), both, layer.kernel, {1, inputs + hidden, 4 * hidden});
  const Value gates = tape.split(named("split"), tape.add_bias(named("bias"), product, layer.bias), 4);
  const Value forget = tape.function(named("forget"), tape.shift(named("forget_bias"), gates));
  const Value kept = tape.multiply(named("kept"), layer.c, forget);
  const Value fresh = tape.multiply(named("fresh"), tape.function(named("input"), gates),
                                    tape.function(named("candidate"), gates));
  layer.c = tape.add(named("c"), {kept, fresh});
  layer.h = tape.multiply(named("h"), tape.function(named("squashed"), layer.c),
                          tape.function(named("output"), gates));
  return layer.h;
}

/// y = t relu(x W + b) + (1 - t) x with t = sigmoid(x V + d): Srivastava et al., Highway Networks, 2015.
Value highway_layer(OperationTape& tape, const std::string& name, Value x, double rows, double width) {
  const auto dense = [&](const char* part) {
    const Value weights = tape.variable(fmt::format("{}.{}.kernel", name, part), width * width);
    const Value product =
        tape.product(fmt::format("{}.{}.matmul", name, part), x, weights, {rows, width, width});
    const Value bias = tape.variable(fmt::format("{}.{}.bias", name, part), width);
    return tape.function(fmt::format("{}.{}.value", name, part),
                         tape.add_bias(fmt::format("{}.{}.bias_add", name, part), product, bias));
  };
  const Value transform = dense("transform"), candidate = dense("candidate");
  return tape.add(name + ".sum", {tape.multiply(name + ".new", transform, candidate),
                                  tape.multiply(name + ".old", tape.shift(name + ".carry", transform), x)});
}

/// All words of all steps at once; sets the width of what comes out of one.
Value spelled_words(OperationTape& tape, const CharacterLayers& shape, double steps, double& width) {
  const Value table = tape.variable("characters.embedding", shape.alphabet * shape.embedding);
  const Value spelling = tape.lookup("characters", table, steps * shape.word_length * shape.embedding);
  std::vector<Value> maxima;
  width = 0;
  for (std::size_t i = 0; i < shape.widths.size(); ++i) {
    const std::string name = fmt::format("conv{}", shape.widths[i]);
    const double features = shape.features[i];
    const double places = steps * (shape.word_length - shape.widths[i] + 1);
    const Value weights = tape.variable(name + ".kernel", shape.widths[i] * shape.embedding * features);
    const Value seen = tape.convolution(name, spelling, weights,
                                        {places, 1, shape.embedding, features, 1, shape.widths[i], 1});
    const Value bias = tape.variable(name + ".bias", features);
    const Value value = tape.function(name + ".tanh", tape.add_bias(name + ".bias_add", seen, bias));
    maxima.push_back(tape.max_pool(name + ".max", value, steps * features));
    width += features;
  }
  Value words = tape.concat("words", maxima);
  for (int i = 0; i < shape.highway; ++i)
    words = highway_layer(tape, fmt::format("highway{}", i), words, steps, width);
  return words;
}

}  // namespace

OperationNetwork recurrent_network(const RecurrentNetwork& shape, Optimizer optimizer, bool clip) {
  OperationTape tape;
  const double steps = shape.steps;
  double width = shape.hidden;
  Value words = 0;
  if (shape.characters)
    words = spelled_words(tape, *shape.characters, steps, width);
  else
    words = tape.lookup("words", tape.variable("embedding", shape.vocabulary * shape.hidden),
                        steps * shape.hidden);
  const Value word_of = tape.split("steps", words, shape.steps);
  std::vector<LstmLayer> layers;
  for (int l = 0; l < shape.layers; ++l) {
    const std::string name = fmt::format("lstm{}", l);
    const double inputs = l == 0 ? width : shape.hidden;
    layers.push_back({name, tape.variable(name + ".kernel", (inputs + shape.hidden) * 4 * shape.hidden),
                      tape.variable(name + ".bias", 4 * shape.hidden),
                      tape.samples(name + ".h0", shape.hidden), tape.samples(name + ".c0", shape.hidden)});
  }
  std::vector<Value> outputs;
  for (int step = 0; step < shape.steps; ++step) {
    Value x = word_of;
    for (int l = 0; l < shape.layers; ++l)
      x = lstm_cell(tape, layers[l], x, l == 0 ? width : shape.hidden, shape.hidden, step);
    outputs.push_back(x);
  }
  const Value kernel = tape.variable("softmax.kernel", shape.hidden * shape.vocabulary);
  const Value logits = tape.product("softmax.matmul", tape.concat("outputs", outputs), kernel,
                                    {steps, shape.hidden, shape.vocabulary});
  tape.loss("loss", tape.add_bias("logits", logits, tape.variable("softmax.bias", shape.vocabulary)));
  return std::move(tape).differentiate(optimizer, clip);
}

}  // namespace convoy::strategies
