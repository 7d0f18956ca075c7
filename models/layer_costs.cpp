// SPDX-License-Identifier: MIT
#include "models/layer_costs.h"

#include <algorithm>
#include <array>
#include <limits>

#include "models/activation_flops.h"
#include "models/attention.h"

namespace convoy::inline models {
namespace {

constexpr double index_bytes = 8;  // max pooling's int64 indices
constexpr double mask_bytes = 4;   // dropout's float mask

/// What the kernels of a loss read and write, a value of its input: counted by a TorchDispatchMode on PyTorch
/// 1.13's functions and torchvision 0.14.1's sigmoid_focal_loss, summed up, views left out.
struct LossPasses {
  double forward_kernels, forward, backward_kernels, backward;
};
const LossPasses& loss_passes(DetectionLoss::Function function) {
  static constexpr std::array<LossPasses, 5> passes{
      {{16, 38, 16, 43}, {2, 3, 2, 5}, {1, 2, 4, 9}, {1, 2, 1, 3}, {1, 2, 1, 3}}};
  return passes[static_cast<std::size_t>(function)];
}

/// Cost rules, one overload a kind.
class CostRules {
 public:
  CostRules(const Model& model, const Layer& layer, Framework framework)
      : layer_(layer), framework_(framework) {
    for (const LayerIndex input : layer.inputs) {
      const auto values = static_cast<double>(elements(model.shape_of(input)));
      in_ += values;
      smallest_ = std::min(smallest_, values);
    }
    out_ = static_cast<double>(elements(layer.output));
    parameters_ = static_cast<double>(layer.parameter_elements() + layer.shared_elements);
    if (layer.inputs.empty()) return;
    channels_ = model.shape_of(layer.inputs.front()).front();
    last_input_ = model.shape_of(layer.inputs.back());
  }

  LayerCosts operator()(const Conv2d& conv) const {
    const bool depthwise = conv.groups > 1 && conv.groups == channels_;
    LayerCosts costs = multiply_adds(depthwise ? KernelKind::depthwise_convolution : KernelKind::convolution);
    // A kernel smaller than its stride passes over values: it reads the others only.
    const auto touched = [](std::int64_t kernel, std::int64_t stride) {
      return std::min(1.0, static_cast<double>(kernel) / static_cast<double>(stride));
    };
    const double passed_over =
        in_ * (1 - touched(conv.kernel.h, conv.stride.h) * touched(conv.kernel.w, conv.stride.w));
    costs.forward->values -= passed_over;
    costs.weight_gradient->values -= passed_over;
    return costs;
  }
  LayerCosts operator()(const ConvTranspose2d& conv) const {
    const bool depthwise = conv.groups > 1 && conv.groups == channels_;
    return multiply_adds(depthwise ? KernelKind::depthwise_convolution : KernelKind::convolution);
  }
  LayerCosts operator()(const Conv3d& conv) const {
    const bool depthwise = conv.groups > 1 && conv.groups == channels_;
    return multiply_adds(depthwise ? KernelKind::depthwise_convolution : KernelKind::convolution);
  }
  LayerCosts operator()(const ConvTranspose3d& conv) const {
    const bool depthwise = conv.groups > 1 && conv.groups == channels_;
    return multiply_adds(depthwise ? KernelKind::depthwise_convolution : KernelKind::convolution);
  }
  LayerCosts operator()(const Linear&) const { return multiply_adds(KernelKind::matmul); }

  /// As torchvision computes it (torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu): the samples of all
  /// windows are written as a matrix, which a product reads. Four neighbours make a sample, 8 FLOPs.
  /// Backward, the gradient of the matrix is read for that of the image, which is added up value by value, and for that
  /// of offsets and factors; for the weights' gradient the matrix is made again.
  LayerCosts operator()(const DeformConv2d& conv) const {
    LayerCosts costs = multiply_adds(KernelKind::convolution);
    const double matrix = static_cast<double>(conv.kernel.h * conv.kernel.w) *
                          static_cast<double>(channels_) * out_ / static_cast<double>(layer_.output.front());
    for (auto* cost : {&costs.forward, &costs.data_gradient, &costs.weight_gradient}) {
      (*cost)->flops += 8 * matrix;
      (*cost)->aside_values = 2 * matrix;
    }
    costs.data_gradient->aside_values = 3 * matrix + in_;
    costs.data_gradient->flops += 8 * matrix;
    return costs;
  }

  /// Two products, of queries by keys and of scores by values; backward four, and a fifth where the scores
  /// are computed again (Dao et al., arXiv:2205.14135, algorithm 4). Kernels that write the scores also read
  /// and write what stands at kept_attention.
  LayerCosts operator()(const Attention& attention) const {
    const AttentionSizes sizes = attention_sizes(attention, layer_.output, last_input_);
    const double products = 2.0 * static_cast<double>(layer_.macs);
    const bool kept = keeps_scores(attention, framework_);
    const double backward = (kept ? 2 : 2.5) * products + 8 * sizes.scores();
    LayerCosts costs{KernelKind::matmul,
                     KernelCost{products + 5 * sizes.scores(), in_ + out_, parameters_, 0},
                     KernelCost{backward, 2 * in_ + 2 * out_, parameters_, 0}, std::nullopt};
    if (parameters_ > 0) costs.weight_gradient = KernelCost{0, 0, parameters_, 0};
    if (attention.position_bias) {  // a sum over windows and images
      costs.weight_gradient->flops += sizes.scores();
      costs.weight_gradient->values += sizes.scores();
    }
    if (kept) kept_attention(attention, sizes, costs);
    if (attention.position_units > 0) position_terms(costs);
    return costs;
  }

  LayerCosts operator()(const ClassToken&) const {
    return {KernelKind::elementwise, KernelCost{0, in_ + out_, parameters_, 0}, std::nullopt,
            KernelCost{out_ - in_, out_ - in_, parameters_, 0}};
  }

  /// The input's gradient is the output's; the term's is its sum over images.
  LayerCosts operator()(const PositionEmbedding&) const {
    return {KernelKind::elementwise, KernelCost{out_, 2 * out_, parameters_, 0}, std::nullopt,
            KernelCost{out_, out_, parameters_, 0}};
  }

  /// A product and a sum, kernels of their own.
  LayerCosts operator()(const FrozenBatchNorm&) const {
    LayerCosts costs = elementwise({2 * out_, 4 * out_, 0, 0}, {out_, 2 * out_, 0, 0});
    costs.forward->launches = 2;
    return costs;
  }

  LayerCosts operator()(const Pool3d& pool) const {
    const double flops = static_cast<double>(pool.kernel.d * pool.kernel.h * pool.kernel.w) * out_;
    const bool max = pool.mode == Pool::Mode::max;
    const double indices = max ? index_bytes * out_ : 0;
    return {KernelKind::pooling, KernelCost{flops, in_ + out_, 0, indices},
            KernelCost{max ? out_ : flops, in_ + out_, 0, indices}, std::nullopt};
  }

  /// A sample is made of four neighbours, 8 FLOPs, and no more of a map is read than it has. Backward adds
  /// to the neighbours, in a gradient that was filled with zeros; a kernel a map.
  LayerCosts operator()(const RoiAlign& roi) const {
    const double samples = static_cast<double>(roi.sampling * roi.sampling) * out_;
    const double read = std::min(4 * samples, in_);
    LayerCosts costs =
        elementwise({8 * samples, read + out_, 0, 0}, {8 * samples, in_ + 2 * read + out_, 0, 0});
    costs.forward->launches = costs.data_gradient->launches = static_cast<double>(layer_.inputs.size());
    return costs;
  }

  LayerCosts operator()(const SideInput&) const {
    return {KernelKind::elementwise, KernelCost{0, out_, 0, 0}, std::nullopt, std::nullopt};
  }

  LayerCosts operator()(const DetectionLoss& loss) const {
    const LossPasses& passes = loss_passes(loss.function);
    const double values = loss.share * in_;
    LayerCosts costs = elementwise({passes.forward_kernels * values, passes.forward * values, 0, 0},
                                   {passes.backward_kernels * values, passes.backward * values, 0, 0});
    costs.forward->launches = passes.forward_kernels;
    costs.data_gradient->launches = passes.backward_kernels;
    return costs;
  }

  /// Forward: mean and variance (4 a value), normalize, scale and shift (4). Backward after Ioffe & Szegedy,
  /// arXiv:1502.03167, section 3: sums for scale and shift over input and gradient, then the input's
  /// gradient.
  LayerCosts operator()(const Normalization& norm) const {
    LayerCosts costs{KernelKind::normalization, KernelCost{8 * out_, 2 * out_, parameters_, 0},
                     KernelCost{8 * out_, 3 * out_, parameters_, 0}, std::nullopt};
    if (norm.affine) costs.weight_gradient = KernelCost{4 * out_, 2 * out_, parameters_, 0};
    return costs;
  }

  /// A window of `size` squares added up a value, a power, a product; the scales are kept for backward.
  LayerCosts operator()(const LocalResponseNorm& norm) const {
    const double flops = (2.0 * static_cast<double>(norm.size) + 4) * out_;
    return {KernelKind::normalization, KernelCost{flops, 3 * out_, 0, 0},
            KernelCost{2 * flops, 4 * out_, 0, 0}, std::nullopt};
  }

  LayerCosts operator()(const Activation& activation) const {
    const double flops = activation_flops(activation.function) * out_;
    const bool softmax = activation.function == Activation::Function::softmax;
    return {softmax ? KernelKind::softmax_loss : KernelKind::elementwise, KernelCost{flops, 2 * out_, 0, 0},
            KernelCost{flops, 3 * out_, 0, 0}, std::nullopt};
  }

  /// Max pooling's backward follows the indices; the mean's spreads each gradient over its window.
  LayerCosts operator()(const Pool& pool) const {
    const double flops = static_cast<double>(pool.kernel.h) * static_cast<double>(pool.kernel.w) * out_;
    const bool max = pool.mode == Pool::Mode::max;
    const double indices = max ? index_bytes * out_ : 0;
    return {KernelKind::pooling, KernelCost{flops, in_ + out_, 0, indices},
            KernelCost{max ? out_ : flops, in_ + out_, 0, indices}, std::nullopt};
  }

  LayerCosts operator()(const AdaptiveAvgPool&) const {
    return {KernelKind::pooling, KernelCost{in_, in_ + out_, 0, 0}, KernelCost{in_, in_ + out_, 0, 0},
            std::nullopt};
  }

  LayerCosts operator()(const Dropout&) const {
    return elementwise({out_, 2 * out_, 0, mask_bytes * out_}, {out_, 2 * out_, 0, mask_bytes * out_});
  }

  LayerCosts operator()(const Flatten&) const { return {}; }

  /// The gradients of its inputs are slices of its own: views.
  LayerCosts operator()(const Concat&) const {
    return {KernelKind::elementwise, KernelCost{0, in_ + out_, 0, 0}, std::nullopt, std::nullopt};
  }

  /// Backward writes the gradient between zeros.
  LayerCosts operator()(const Slice&) const {
    return {KernelKind::elementwise, std::nullopt, KernelCost{0, in_ + out_, 0, 0}, std::nullopt};
  }

  LayerCosts operator()(const ChannelShuffle&) const {
    return elementwise({0, 2 * out_, 0, 0}, {0, 2 * out_, 0, 0});
  }

  /// Each input's gradient is the gradient itself, summed up where the input was the smaller.
  LayerCosts operator()(const Add&) const {
    const double sums = static_cast<double>(layer_.inputs.size() - 1) * out_;
    if (smallest_ < out_) return elementwise({sums, in_ + out_, 0, 0}, {sums, in_ + out_, 0, 0});
    return {KernelKind::elementwise, KernelCost{sums, in_ + out_, 0, 0}, std::nullopt, std::nullopt};
  }

  /// Backward: gradient times the other input, for both; reads gradient and inputs, writes two gradients.
  LayerCosts operator()(const Multiply&) const {
    return elementwise({out_, in_ + out_, 0, 0}, {2 * out_, out_ + 2 * in_, 0, 0});
  }

  LayerCosts operator()(const Scale&) const {
    LayerCosts costs = elementwise({out_, 2 * out_, parameters_, 0}, {out_, 2 * out_, parameters_, 0});
    costs.weight_gradient = KernelCost{2 * out_, 2 * out_, parameters_, 0};
    return costs;
  }

  LayerCosts operator()(const Upsample&) const {
    return elementwise({0, in_ + out_, 0, 0}, {out_, in_ + out_, 0, 0});
  }

  LayerCosts operator()(const Reshape&) const { return {}; }
  LayerCosts operator()(const Transpose&) const { return {}; }

  LayerCosts operator()(const Pad&) const {
    return elementwise({0, in_ + out_, 0, 0}, {0, in_ + out_, 0, 0});
  }

  /// Backward: gradient times the other input, for both.
  LayerCosts operator()(const MatMul&) const {
    const double flops = 2.0 * static_cast<double>(layer_.macs);
    return {KernelKind::matmul, KernelCost{flops, in_ + out_, 0, 0},
            KernelCost{2 * flops, 2 * (in_ + out_), 0, 0}, std::nullopt};
  }

  LayerCosts operator()(const Elementwise& any) const {
    LayerCosts costs = elementwise({out_, in_ + out_, parameters_, 0},
                                   {out_, (any.keeps_inputs ? 2 : 1) * in_ + out_, parameters_, 0});
    if (any.parameters > 0) costs.weight_gradient = KernelCost{2 * out_, in_ + out_, parameters_, 0};
    return costs;
  }

  LayerCosts operator()(const Custom& custom) const {
    LayerCosts costs{
        KernelKind::custom, KernelCost{custom.forward_flops, 0, 0, custom.memory_bytes, custom.forward_s},
        KernelCost{custom.backward_flops, 0, 0, custom.memory_bytes, custom.backward_s}, std::nullopt};
    if (custom.parameters > 0) {
      costs.data_gradient =
          KernelCost{custom.backward_flops / 2, 0, 0, custom.memory_bytes / 2, custom.backward_s / 2};
      costs.weight_gradient = costs.data_gradient;
    }
    return costs;
  }

 private:
  /// Convolution and linear: forward reads input and weights, data gradient reads gradient and weights,
  /// weight gradient reads input and gradient and writes weight gradients.
  LayerCosts multiply_adds(KernelKind kernel) const {
    const KernelCost cost{2.0 * static_cast<double>(layer_.macs), in_ + out_, parameters_, 0};
    return {kernel, cost, cost, cost};
  }

  /// Kernels of their own, as PyTorch runs them eagerly. Queries, keys and values are copied head by head and
  /// the result back; scores are scaled (in windows the queries are), with a term added for the position and
  /// one for the mask, and a softmax taken. Windows are cut out of the image and put back, and where they are
  /// shifted, the image is before and after. Backward, each has its like.
  static void kept_attention(const Attention& attention, const AttentionSizes& sizes, LayerCosts& costs) {
    const double scores = sizes.scores();
    const double channels = static_cast<double>(sizes.channels);
    const double queries = channels * static_cast<double>(sizes.queries);
    const double keys = channels * sizes.key_tokens();
    const bool windows = sizes.windows, shifted = attention.shift && sizes.several_windows;
    KernelCost &forward = *costs.forward, &backward = *costs.data_gradient;
    forward.values = 2 * queries + 2 * keys + 2 * scores;
    backward.values = 4 * queries + 4 * keys + 4 * scores;
    const double scaled = attention.cosine ? 0 : windows ? queries : scores;
    const double copies = 2 * (2 * queries + 2 * keys);
    const double cut = windows ? 4 * queries : 0, turned = shifted ? 4 * queries : 0;
    forward.aside_values = 2 * scaled + 2 * scores + copies + cut + turned;
    backward.aside_values = 2 * scaled + 3 * scores + 2 * copies + cut + turned;
    forward.launches = 8, backward.launches = 12;
    if (attention.position_bias) forward.aside_values += 2 * scores, forward.launches += 1;
    if (shifted) forward.aside_values += 2 * scores, forward.launches += 3, backward.launches += 2;
    if (attention.cosine) cosine_attention(queries + keys, scores, costs);
  }

  /// The perceptron's two products, sums and sigmoid: what it computes does not depend on images and is next to
  /// nothing, but each kernel is issued (counted by a TorchDispatchMode on torchvision 0.14.1's Swin V2).
  static void position_terms(LayerCosts& costs) {
    costs.forward->launches += 6;
    costs.weight_gradient->launches += 7;
  }

  /// Kernels of torchvision 0.14.1's cosine attention, counted likewise: forward, a norm and a quotient of queries
  /// and of keys, and scores times a factor; backward, 21 values are read or written for each of a query or key. The
  /// factor's gradient is a product and a sum.
  static void cosine_attention(double queries_and_keys, double scores, LayerCosts& costs) {
    costs.forward->aside_values += 3 * queries_and_keys + 2 * scores;
    costs.forward->launches += 10;
    costs.data_gradient->aside_values += 21 * queries_and_keys + 2 * scores;
    costs.data_gradient->launches += 32;
    costs.weight_gradient->flops += 2 * scores;
    costs.weight_gradient->values += 4 * scores;
    costs.weight_gradient->launches += 5;
  }

  static LayerCosts elementwise(const KernelCost& forward, const KernelCost& backward) {
    return {KernelKind::elementwise, forward, backward, std::nullopt};
  }

  const Layer& layer_;
  Framework framework_;
  Shape last_input_;
  double in_ = 0, out_ = 0, parameters_ = 0;
  double smallest_ = std::numeric_limits<double>::infinity();  ///< values of the smallest input
  std::int64_t channels_ = 0;
};

}  // namespace

LayerCosts layer_costs(const Model& model, std::size_t index, Framework framework) {
  const Layer& layer = model.layers[index];
  LayerCosts costs = std::visit(CostRules(model, layer, framework), layer.kind);
  if (layer.frozen) costs.weight_gradient.reset();
  return costs;
}

}  // namespace convoy::models
