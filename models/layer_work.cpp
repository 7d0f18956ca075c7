// SPDX-License-Identifier: MIT
// The work of a layer's kernels, from what they cost: its geometry, and what they are fused with.
#include <algorithm>
#include <array>

#include "models/activation_flops.h"
#include "models/attention.h"
#include "models/layer_costs.h"

namespace convoy::inline models {
namespace {

/// FLOPs of the peak in whose time a core of a CPU computes the exponential of a value, by a polynomial (Sleef's), in
/// the forward and the backward pass: what PyTorch 1.13's functions take longer than ReLU on 262,144 values, times
/// 96 GFLOP/s. Measured on one core with AVX2 (Xeon of the Sapphire Rapids generation, 2026-11-27).
struct OfExponential {
  double forward, backward;
};
OfExponential of_exponential(Activation::Function function) {
  switch (function) {
    case Activation::Function::silu:
      return {65, 58};
    case Activation::Function::gelu:
      return {55, 45};
    case Activation::Function::sigmoid:
      return {60, 0};
    case Activation::Function::tanh:
      return {260, 0};
    case Activation::Function::softmax:
      return {90, 0};
    default:
      return {0, 0};
  }
}

template <typename Convolution>
void set_geometry(const Convolution& conv, Work& work) {
  work.kernel_h = conv.kernel.h;
  work.kernel_w = conv.kernel.w;
  work.stride = std::max(conv.stride.h, conv.stride.w);
  work.groups = conv.groups;
}

/// A window of depth d and height h is one of d h rows.
template <typename Convolution>
void set_geometry_of_volume(const Convolution& conv, Work& work) {
  work.kernel_d = conv.kernel.d;
  work.kernel_h = conv.kernel.d * conv.kernel.h;
  work.kernel_w = conv.kernel.w;
  work.stride = std::max({conv.stride.d, conv.stride.h, conv.stride.w});
  work.groups = conv.groups;
}

/// A product a head and window: of queries by keys, [queries, channels of a head] by [channels, keys].
/// Kernels that do not write the scores lay out their tiles as they like; those of libraries see the matrix as it is.
void set_geometry_of_attention(const Attention& attention, const Shape& output, const Shape& keys, bool kept,
                               Work& work) {
  const AttentionSizes sizes = attention_sizes(attention, output, keys);
  work.in_channels = sizes.channels / sizes.heads;
  work.out_channels = kept ? sizes.keys : (sizes.keys + 7) / 8 * 8;
  work.out_h = sizes.heads * sizes.queries;
  work.out_w = 1;
}

Fusion fusion_of(const Model& model, std::size_t index, KernelKind kernel) {
  if (kernel != KernelKind::elementwise) return Fusion::none;
  const auto reads = [&](const Layer& layer, auto is) {
    return std::any_of(layer.inputs.begin(), layer.inputs.end(),
                       [&](LayerIndex input) { return input != image_input && is(model.layers[input]); });
  };
  const auto is_normalization = [](const Layer& layer) {
    const auto* norm = std::get_if<Normalization>(&layer.kind);
    return norm && norm->over == Normalization::Over::batch;
  };
  const auto is_sum = [&](const Layer& layer) {
    return std::holds_alternative<Add>(layer.kind) && reads(layer, is_normalization);
  };
  const Layer& layer = model.layers[index];
  const bool is_activation = std::holds_alternative<Activation>(layer.kind) &&
                             (reads(layer, is_normalization) || reads(layer, is_sum));
  return is_activation || is_sum(layer) ? Fusion::normalization : Fusion::chain;
}

}  // namespace

Work layer_work(const Model& model, std::size_t index, KernelKind kernel, const KernelCost& cost, Phase phase,
                Precision precision) {
  const Layer& layer = model.layers[index];
  const double element = element_bytes(precision);
  Work work;
  work.kind = kernel;
  work.phase = phase;
  work.fusion = fusion_of(model, index, kernel);
  work.flops_per_image = cost.flops;
  work.bytes_per_image = element * cost.values + cost.bytes;
  work.bytes_fixed = element * cost.parameters;
  work.aside_bytes_per_image = element * cost.aside_values + cost.aside_bytes;
  work.aside_bytes_fixed = cost.aside_fixed_bytes;
  work.reordered_bytes = element * cost.reordered_parameters;
  work.launches = static_cast<float>(cost.launches);
  work.seconds_per_image = cost.seconds;
  work.layer = static_cast<std::uint32_t>(index);
  const auto* mean = std::get_if<AdaptiveAvgPool>(&layer.kind);
  work.is_whole_mean = mean && mean->size == Size2{1, 1};
  if (const auto* activation = std::get_if<Activation>(&layer.kind)) {
    const OfExponential flops = of_exponential(activation->function);
    work.peak_flops_a_flop = static_cast<float>((phase == Phase::forward ? flops.forward : flops.backward) /
                                                activation_flops(activation->function));
  }
  if (layer.macs == 0) return work;
  if (const auto* attention = std::get_if<Attention>(&layer.kind)) {
    set_geometry_of_attention(*attention, layer.output, model.shape_of(layer.inputs.back()),
                              cost.aside_values > 0, work);
    return work;
  }
  if (kernel == KernelKind::matmul) {  // [rows, in] by [in, out]
    const auto* linear = std::get_if<Linear>(&layer.kind);
    const bool channels = linear && linear->channels;
    const Shape& in = model.shape_of(layer.inputs.front());
    work.in_channels = channels ? in.front() : in.back();
    work.out_channels = channels ? layer.output.front() : layer.output.back();
    work.out_h = elements(layer.output) / work.out_channels;
    work.out_w = 1;
    if (layer.output.size() == 1) work.out_h = work.out_w = 0;
    return work;
  }
  work.in_channels = model.shape_of(layer.inputs.front()).front();
  work.out_channels = layer.output.front();
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) set_geometry(*conv, work);
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) set_geometry(*conv, work);
  if (const auto* conv = std::get_if<DeformConv2d>(&layer.kind)) set_geometry(*conv, work);
  if (const auto* conv = std::get_if<Conv3d>(&layer.kind)) set_geometry_of_volume(*conv, work);
  if (const auto* conv = std::get_if<ConvTranspose3d>(&layer.kind)) set_geometry_of_volume(*conv, work);
  work.out_w = layer.output.back();
  work.out_h = elements(layer.output) / (work.out_channels * work.out_w);
  return work;
}

Work update_work(const Layer& layer, Precision precision, Optimizer optimizer) {
  Work work;
  work.kind = KernelKind::update;
  work.phase = Phase::update;
  if (std::holds_alternative<Custom>(layer.kind)) return work;  // all its costs are given
  // Per parameter. SGD: w -= lr g. Momentum: v = m v + g; w -= lr v. Adam: Kingma & Ba, arXiv:1412.6980,
  // algorithm 1.
  static constexpr std::array<double, 3> flops{2, 4, 12};
  static constexpr std::array<double, 3> states{0, 1, 2};
  const auto kind = static_cast<std::size_t>(optimizer);
  const double element = element_bytes(precision);
  const double half_weights = element < 4 ? element : 0;
  const double parameters = static_cast<double>(layer.parameter_elements());
  work.flops_fixed = flops[kind] * parameters;
  work.bytes_fixed = (8 + element + half_weights + 8 * states[kind]) * parameters;
  return work;
}

}  // namespace convoy::models
