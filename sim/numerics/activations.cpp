// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
namespace {

using Function = Activation::Function;

constexpr double leak = 0.01;  // PyTorch's leaky_relu

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The derivative of a function by its value, where that tells it: frameworks keep the value, then, and may have written
/// it over x.
std::optional<double> slope_by_value(Function function, double value) {
  switch (function) {
    case Function::relu:
      return value > 0 ? 1.0 : 0.0;
    case Function::relu6:
      return value > 0 && value < 6 ? 1.0 : 0.0;
    case Function::sigmoid:
      return value * (1 - value);
    case Function::tanh:
      return 1 - value * value;
    default:
      return std::nullopt;
  }
}

/// A function and its derivative at x. (softmax is not elementwise: no kernel.)
std::pair<double, double> activation_at(Function function, double x) {
  const auto with_slope = [&](double value) { return std::pair{value, *slope_by_value(function, value)}; };
  switch (function) {
    case Function::relu:
      return with_slope(x > 0 ? x : 0);
    case Function::relu6:
      return with_slope(std::clamp(x, 0.0, 6.0));
    case Function::leaky_relu:
      return x > 0 ? std::pair{x, 1.0} : std::pair{leak * x, leak};
    case Function::hardswish:
      if (x <= -3) return {0, 0};
      return x >= 3 ? std::pair{x, 1.0} : std::pair{x * (x + 3) / 6, (2 * x + 3) / 6};
    case Function::hardsigmoid:
      return x > -3 && x < 3 ? std::pair{x / 6 + 0.5, 1.0 / 6} : std::pair{x > 0 ? 1.0 : 0.0, 0.0};
    case Function::silu: {
      const double s = logistic(x);
      return {x * s, s * (1 + x * (1 - s))};
    }
    case Function::gelu: {
      const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
      return {x * below, below + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi)};
    }
    case Function::sigmoid:
      return with_slope(logistic(x));
    case Function::tanh:
      return with_slope(std::tanh(x));
    case Function::softmax:
      break;
  }
  return {0, 0};
}

}  // namespace

template <class Real>
Tensor<Real> ActivationKernels<Real>::forward(const KernelCall<Real>& call) {
  const Function function = std::get<Activation>(call.layer->kind).function;
  Tensor<Real> output = *call.inputs[0];
  for (Real& value : output.values) value = static_cast<Real>(activation_at(function, value).first);
  return output;
}

template <class Real>
Tensor<Real> ActivationKernels<Real>::data_gradient(const KernelCall<Real>& call,
                                                    const Tensor<Real>& gradient) {
  const Function function = std::get<Activation>(call.layer->kind).function;
  const bool by_value = call.output && slope_by_value(function, 0);
  const auto slope = [&](std::size_t v) {
    return by_value ? *slope_by_value(function, call.output->values[v])
                    : activation_at(function, call.inputs[0]->values[v]).second;
  };
  Tensor<Real> result = gradient;
  for (std::size_t v = 0; v < result.values.size(); ++v) result.values[v] *= static_cast<Real>(slope(v));
  return result;
}

template struct ActivationKernels<double>;
template struct ActivationKernels<float>;

}  // namespace convoy::numerics
