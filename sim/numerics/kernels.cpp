// SPDX-License-Identifier: MIT
#include "sim/numerics/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "models/unfused_work.h"
#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
namespace {

/// Who has the kernels of a kind of layer.
enum class KernelOwner : std::uint8_t {
  nobody,
  convolution,
  linear,
  normalization,
  pool,
  activation,
  moving
};

struct OwnerOfKind {
  KernelOwner operator()(const Conv2d&) const { return KernelOwner::convolution; }
  KernelOwner operator()(const Linear&) const { return KernelOwner::linear; }
  KernelOwner operator()(const Normalization&) const { return KernelOwner::normalization; }
  KernelOwner operator()(const Pool&) const { return KernelOwner::pool; }
  KernelOwner operator()(const AdaptiveAvgPool&) const { return KernelOwner::pool; }
  KernelOwner operator()(const Activation& of) const {
    return of.function == Activation::Function::softmax ? KernelOwner::nobody : KernelOwner::activation;
  }
  template <class Kind>
  KernelOwner operator()(const Kind&) const {
    constexpr bool moves =
        std::is_same_v<Kind, Dropout> || std::is_same_v<Kind, Flatten> || std::is_same_v<Kind, Concat> ||
        std::is_same_v<Kind, Slice> || std::is_same_v<Kind, ChannelShuffle> || std::is_same_v<Kind, Add> ||
        std::is_same_v<Kind, Multiply> || std::is_same_v<Kind, Scale> || std::is_same_v<Kind, Reshape> ||
        std::is_same_v<Kind, Transpose> || std::is_same_v<Kind, Pad>;
    return moves ? KernelOwner::moving : KernelOwner::nobody;
  }
};

KernelOwner owner_of(const Layer& layer) { return std::visit(OwnerOfKind{}, layer.kind); }

/// exp(x - largest) and their sum, of an image's classes.
template <class Real>
std::pair<std::vector<double>, double> exponentials(const Real* classes, std::int64_t count) {
  const double largest = *std::max_element(classes, classes + count);
  std::vector<double> powers;
  double sum = 0;
  for (std::int64_t c = 0; c < count; ++c) sum += powers.emplace_back(std::exp(classes[c] - largest));
  return {std::move(powers), sum};
}

}  // namespace

template <class Real>
Tensor<Real> forward_kernel(const KernelCall<Real>& call) {
  switch (owner_of(*call.layer)) {
    case KernelOwner::convolution:
      return ConvolutionKernels<Real>::forward(call);
    case KernelOwner::linear:
      return LinearKernels<Real>::forward(call);
    case KernelOwner::normalization:
      return NormalizationKernels<Real>::forward(call);
    case KernelOwner::pool:
      return PoolKernels<Real>::forward(call);
    case KernelOwner::activation:
      return ActivationKernels<Real>::forward(call);
    case KernelOwner::moving:
      return MovingKernels<Real>::forward(call);
    case KernelOwner::nobody:
      break;
  }
  throw std::logic_error(fmt::format("no kernel for layer '{}'", call.layer->name));
}

template <class Real>
std::vector<Tensor<Real>> data_gradient_kernel(const KernelCall<Real>& call, const Tensor<Real>& gradient) {
  switch (owner_of(*call.layer)) {
    case KernelOwner::convolution:
      return {ConvolutionKernels<Real>::data_gradient(call, gradient)};
    case KernelOwner::linear:
      return {LinearKernels<Real>::data_gradient(call, gradient)};
    case KernelOwner::normalization:
      return {NormalizationKernels<Real>::data_gradient(call, gradient)};
    case KernelOwner::pool:
      return {PoolKernels<Real>::data_gradient(call, gradient)};
    case KernelOwner::activation:
      return {ActivationKernels<Real>::data_gradient(call, gradient)};
    case KernelOwner::moving:
      return MovingKernels<Real>::data_gradient(call, gradient);
    case KernelOwner::nobody:
      break;
  }
  throw std::logic_error(fmt::format("no kernel for layer '{}'", call.layer->name));
}

template <class Real>
std::vector<std::vector<Real>> weight_gradient_kernel(const KernelCall<Real>& call,
                                                      const Tensor<Real>& gradient) {
  switch (owner_of(*call.layer)) {
    case KernelOwner::convolution:
      return ConvolutionKernels<Real>::weight_gradient(call, gradient);
    case KernelOwner::linear:
      return LinearKernels<Real>::weight_gradient(call, gradient);
    case KernelOwner::normalization:
      return NormalizationKernels<Real>::weight_gradient(call, gradient);
    case KernelOwner::moving:
      return MovingKernels<Real>::weight_gradient(call, gradient);
    default:
      break;
  }
  throw std::logic_error(fmt::format("layer '{}' has no parameters", call.layer->name));
}

template <class Real>
void update_running(const KernelCall<Real>& call, RunningStatistics<Real>& running) {
  NormalizationKernels<Real>::update_running(call, running);
}

template <class Real>
double cross_entropy(const Tensor<Real>& output, const std::vector<std::int32_t>& labels) {
  double loss = 0;
  for (std::int64_t i = 0; i < output.images; ++i) {
    const auto [powers, sum] = exponentials(output.image(i), output.size());
    loss -= std::log(powers[static_cast<std::size_t>(labels[static_cast<std::size_t>(i)])] / sum);
  }
  return loss;
}

template <class Real>
Tensor<Real> cross_entropy_gradient(const Tensor<Real>& output, const std::vector<std::int32_t>& labels,
                                    double scale) {
  Tensor<Real> result(output.shape, output.images);
  for (std::int64_t i = 0; i < output.images; ++i) {
    const auto [powers, sum] = exponentials(output.image(i), output.size());
    for (std::int64_t c = 0; c < output.size(); ++c) {
      const double target = labels[static_cast<std::size_t>(i)] == c ? 1 : 0;
      result.image(i)[c] = static_cast<Real>(scale * (powers[static_cast<std::size_t>(c)] / sum - target));
    }
  }
  return result;
}

std::string refuses_numerics(const Model& model) {
  if (!model.cross_entropy_loss)
    return fmt::format("'{}' has no `loss: cross_entropy` by which it could learn", model.name);
  for (const Layer& layer : model.layers) {
    if (layer.frozen && (!layer.parameters.empty() || layer.shares()))
      return fmt::format("layer '{}' of '{}' is frozen, and only trained layers have values", layer.name,
                         model.name);
    if (owner_of(layer) == KernelOwner::nobody)
      return fmt::format("layer '{}' of '{}' is of kind {}, which has no kernel", layer.name, model.name,
                         kind_name(layer.kind));
    if (has_l2_loss(layer))
      return fmt::format("layer '{}' of '{}' has `l2_loss`, whose factor is not stated", layer.name,
                         model.name);
  }
  return {};
}

template Tensor<double> forward_kernel(const KernelCall<double>&);
template Tensor<float> forward_kernel(const KernelCall<float>&);
template std::vector<Tensor<double>> data_gradient_kernel(const KernelCall<double>&, const Tensor<double>&);
template std::vector<Tensor<float>> data_gradient_kernel(const KernelCall<float>&, const Tensor<float>&);
template std::vector<std::vector<double>> weight_gradient_kernel(const KernelCall<double>&,
                                                                 const Tensor<double>&);
template std::vector<std::vector<float>> weight_gradient_kernel(const KernelCall<float>&,
                                                                const Tensor<float>&);
template void update_running(const KernelCall<double>&, RunningStatistics<double>&);
template void update_running(const KernelCall<float>&, RunningStatistics<float>&);
template double cross_entropy(const Tensor<double>&, const std::vector<std::int32_t>&);
template double cross_entropy(const Tensor<float>&, const std::vector<std::int32_t>&);
template Tensor<double> cross_entropy_gradient(const Tensor<double>&, const std::vector<std::int32_t>&,
                                               double);
template Tensor<float> cross_entropy_gradient(const Tensor<float>&, const std::vector<std::int32_t>&, double);

}  // namespace convoy::numerics
