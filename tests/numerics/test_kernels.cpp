// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>

#include "models/model.h"
#include "sim/base/yaml_map.h"
#include "sim/numerics/kernels.h"
#include "sim/numerics/network.h"

using namespace convoy;

namespace {

Tensor<double> random_tensor(std::mt19937& random, const Shape& shape, std::int64_t images) {
  Tensor<double> tensor(shape, images);
  std::normal_distribution<double> normal;
  for (double& value : tensor.values) value = normal(random);
  return tensor;
}

double product(const Tensor<double>& a, const Tensor<double>& b) {
  double sum = 0;
  for (std::size_t v = 0; v < a.values.size(); ++v) sum += a.values[v] * b.values[v];
  return sum;
}

/// Compares a kernel's gradients with central differences of <output, weights>, value by value.
void check_gradients(const Layer& layer, std::vector<Tensor<double>> inputs,
                     std::vector<std::vector<double>> parameters, std::mt19937& random) {
  constexpr double step = 1e-6, tolerance = 1e-6;
  const auto call = [&] {
    KernelCall<double> of;
    of.layer = &layer;
    for (const Tensor<double>& input : inputs) of.inputs.push_back(&input);
    for (const std::vector<double>& parameter : parameters) of.parameters.push_back(&parameter);
    of.step = 3, of.index = 5;
    return of;
  };
  const Tensor<double> output = forward_kernel(call());
  REQUIRE(output.values.size() == static_cast<std::size_t>(output.images * elements(layer.output)));
  const Tensor<double> weights = random_tensor(random, layer.output, output.images);
  const auto slope = [&](double& value) {
    const double kept = value;
    value = kept + step;
    const double above = product(forward_kernel(call()), weights);
    value = kept - step;
    const double below = product(forward_kernel(call()), weights);
    value = kept;
    return (above - below) / (2 * step);
  };
  const std::vector<Tensor<double>> gradients = data_gradient_kernel(call(), weights);
  REQUIRE(gradients.size() == inputs.size());
  for (std::size_t n = 0; n < inputs.size(); ++n)
    for (std::size_t v = 0; v < inputs[n].values.size(); ++v) {
      const double wanted = slope(inputs[n].values[v]), is = gradients[n].values[v];
      CHECK_MESSAGE(std::abs(is - wanted) <= tolerance * (1 + std::abs(wanted)),
                    "input " << n << ", value " << v << ": " << is << ", differences say " << wanted);
    }
  if (parameters.empty()) return;
  const std::vector<std::vector<double>> of_parameters = weight_gradient_kernel(call(), weights);
  REQUIRE(of_parameters.size() == parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (std::size_t v = 0; v < parameters[p].size(); ++v) {
      const double wanted = slope(parameters[p][v]), is = of_parameters[p][v];
      CHECK_MESSAGE(std::abs(is - wanted) <= tolerance * (1 + std::abs(wanted)),
                    "parameter " << p << ", value " << v << ": " << is << ", differences say " << wanted);
    }
}

}  // namespace

TEST_CASE("numerics: gradients of every kernel are the slopes that central differences show") {
  std::mt19937 random(11);
  for (const std::string keys :
       {"kind: conv2d, out_channels: 3, kernel: 3, padding: 1",
        "kind: conv2d, out_channels: 6, kernel: [3, 2], stride: 2, padding: [2, 1], groups: 2, bias: false",
        "kind: conv2d, out_channels: 4, kernel: 3, padding: 2, dilation: 2, groups: 4",
        "kind: batch_norm",
        "kind: group_norm, groups: 2",
        "kind: layer_norm",
        "kind: group_norm, groups: 4",
        "kind: relu",
        "kind: relu6",
        "kind: leaky_relu",
        "kind: hardswish",
        "kind: hardsigmoid",
        "kind: silu",
        "kind: gelu",
        "kind: sigmoid",
        "kind: tanh",
        "kind: max_pool, kernel: 3, stride: 2, padding: 1",
        "kind: max_pool, kernel: 2, stride: 2, ceil: true",
        "kind: avg_pool, kernel: 3, stride: 2, padding: 1, ceil: true",
        "kind: avg_pool, kernel: 2",
        "kind: adaptive_avg_pool, size: 2",
        "kind: adaptive_avg_pool",
        "kind: dropout, rate: 0.4",
        "kind: flatten",
        "kind: slice, first: 1, last: 3",
        "kind: channel_shuffle, groups: 2",
        "kind: scale",
        "kind: add, inputs: [a, b]",
        "kind: multiply, inputs: [a, b]",
        "kind: multiply, inputs: [a, c]",
        "kind: add, inputs: [a, c]",
        "kind: concat, inputs: [a, b]",
        "kind: concat, inputs: [b, a, b2]",
        "kind: linear, out_features: 3, inputs: [v]"}) {
    CAPTURE(keys);
    const std::string text =
        "{name: n, input: [4, 5, 4], layers: [{name: a, kind: conv2d, out_channels: 4, kernel: 1}, "
        "{name: b, kind: conv2d, out_channels: 4, kernel: 1}, {name: b2, kind: relu, inputs: [b]}, {name: c, "
        "kind: adaptive_avg_pool, "
        "inputs: [a]}, {name: v, kind: flatten, inputs: [c]}, {name: x, " +
        keys + (keys.find("inputs") == std::string::npos ? ", inputs: [a]" : "") + "}]}";
    const Model model = read_model(parse_yaml(text, "model"));
    const Layer& layer = model.layers.back();
    std::vector<Tensor<double>> inputs;
    for (const LayerIndex input : layer.inputs)
      inputs.push_back(random_tensor(random, model.shape_of(input), 3));
    std::vector<std::vector<double>> parameters;
    for (const ParameterTensor& parameter : layer.parameters)
      parameters.push_back(random_tensor(random, {parameter.elements}, 1).values);
    check_gradients(layer, inputs, parameters, random);
  }
}

TEST_CASE("numerics: cross entropy by hand, and its gradient") {
  Tensor<double> output({3}, 2);
  output.values = {1, 2, 3, 0, 0, 0};
  const std::vector<std::int32_t> labels{2, 0};
  // ln(e + e^2 + e^3) - 3 = 0.40760596, and ln 3
  CHECK(cross_entropy(output, labels) == doctest::Approx(0.4076059644443803 + std::log(3.0)).epsilon(1e-12));
  const Tensor<double> gradient = cross_entropy_gradient(output, labels, 0.5);
  for (std::size_t v = 0; v < 6; ++v) {
    constexpr double step = 1e-6;
    Tensor<double> above = output, below = output;
    above.values[v] += step, below.values[v] -= step;
    const double slope = (cross_entropy(above, labels) - cross_entropy(below, labels)) / (2 * step);
    CHECK(gradient.values[v] == doctest::Approx(0.5 * slope).epsilon(1e-8));
  }
}

TEST_CASE(
    "numerics: dropout drops its share, leaves the mean, and draws an image's mask whoever has the image") {
  const Model model = read_model(
      parse_yaml("{name: n, input: [100], layers: [{name: d, kind: dropout, rate: 0.25}]}", "model"));
  Tensor<double> ones({100}, 40);
  ones.values.assign(ones.values.size(), 1.0);
  KernelCall<double> call;
  call.layer = &model.layers[0];
  call.inputs = {&ones};
  const Tensor<double> all = forward_kernel(call);
  double sum = 0;
  for (const double value : all.values) {
    CHECK((value == 0 || value == doctest::Approx(4.0 / 3)));
    sum += value;
  }
  CHECK(sum / 4000 == doctest::Approx(1).epsilon(0.05));
  call.first_image = 30;
  const Tensor<double> later = forward_kernel(call);
  CHECK(std::equal(later.values.begin(), later.values.begin() + 1000, all.values.begin() + 3000));
  call.training = false;
  CHECK(forward_kernel(call).values == ones.values);
}

TEST_CASE("networks with layers that are not trained, or with a loss of their own, are refused") {
  const std::string text =
      "{name: part, input: [1, 8, 8], loss: cross_entropy, layers: [{name: a, kind: "
      "conv2d, out_channels: 4, kernel: 3, frozen: true}, {name: f, kind: flatten}, "
      "{name: fc, kind: linear, out_features: 10}]}";
  CHECK(refuses_numerics(read_model(parse_yaml(text, "model"))) ==
        "layer 'a' of 'part' is frozen, and only trained layers have values");
  const std::string more_loss =
      "{name: part, input: [8], loss: cross_entropy, layers: [{name: fc, kind: linear, out_features: 10, "
      "l2_loss: true}]}";
  CHECK(refuses_numerics(read_model(parse_yaml(more_loss, "model"))) ==
        "layer 'fc' of 'part' has `l2_loss`, whose factor is not stated");
}
