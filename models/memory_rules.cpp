// SPDX-License-Identifier: MIT
#include "models/memory_rules.h"

#include "models/attention.h"

namespace convoy::inline models {
namespace {

/// One overload a kind. Source of what is kept: the backward formulas of PyTorch 2.0,
/// tools/autograd/derivatives.yaml; the formula's name stands at each rule. Where MXNet differs: what its
/// operators declare as dependencies of their gradients, src/operator, as of version 1.0.
struct Rules {
  const Shape& output;
  Framework framework;
  const Shape& last_input;
  bool mxnet = is_mxnet(framework);
  double values = static_cast<double>(elements(output));

  /// convolution_backward(grad, input, weight): the weight gradient needs the input.
  MemoryRules operator()(const Conv2d&) const { return {.input_for_weights = true}; }
  MemoryRules operator()(const ConvTranspose2d&) const { return {.input_for_weights = true}; }

  MemoryRules operator()(const Conv3d&) const { return {.input_for_weights = true}; }
  MemoryRules operator()(const ConvTranspose3d&) const { return {.input_for_weights = true}; }
  /// Offsets and factors are needed for both gradients, and the image too.
  MemoryRules operator()(const DeformConv2d&) const {
    return {.input_for_data = true, .input_for_weights = true};
  }

  /// Kernels of their own: bmm(a, b) keeps queries, keys and values, _softmax_backward_data(grad, result) the
  /// scores, in single precision under autocast, and bmm a copy of them in half. One kernel:
  /// _scaled_dot_product_flash_attention_backward(grad, query, key, value, out, logsumexp, ...).
  MemoryRules operator()(const Attention& attention) const {
    const AttentionSizes sizes = attention_sizes(attention, output, last_input);
    if (!keeps_scores(attention, framework))
      return {.input_for_data = true,
              .output_for_data = true,
              .extra = "logsumexp",
              .extra_bytes = 4 * static_cast<double>(sizes.heads * sizes.queries)};
    MemoryRules rules{.input_for_data = true,
                      .extra = "scores",
                      .extra_bytes = 4 * sizes.scores(),
                      .extra_cast_bytes = 2 * sizes.scores()};
    if (attention.cosine) keep_normalized(sizes, rules);
    return rules;
  }

  /// Cosine attention (counted on torchvision 0.14.1's Swin V2): mul(scores, factor) keeps the scores before the
  /// factor. norm(self) and div(self, norm) keep queries and keys as they come and two norms a token and head, and
  /// bmm what it multiplies. Under autocast, bmm's are in half precision and so are the scores before the factor,
  /// while norm keeps copies of queries and keys in single precision.
  static void keep_normalized(const AttentionSizes& sizes, MemoryRules& rules) {
    const auto channels = static_cast<double>(sizes.channels);
    const double queries = channels * static_cast<double>(sizes.queries);
    const double keys = channels * sizes.key_tokens();
    const double norms = 2 * static_cast<double>(sizes.heads) * (queries + keys) / channels;
    rules.extra_bytes += 4 * (sizes.scores() + queries + 2 * keys + norms);
    rules.extra_cast_bytes += 2 * queries - 2 * sizes.scores();
  }
  MemoryRules operator()(const ClassToken&) const { return {}; }
  MemoryRules operator()(const PositionEmbedding&) const { return {}; }

  /// mul(input, factor) keeps the factor, which is no result.
  MemoryRules operator()(const FrozenBatchNorm&) const { return {}; }

  /// addmm: mat1 for the weight's gradient.
  MemoryRules operator()(const Linear&) const { return {.input_for_weights = true}; }

  /// native_batch_norm_backward(grad, input, ...); its mean and deviation a channel are not an image's.
  /// native_layer_norm_backward(grad, input, mean, rstd, ...): two values a position.
  /// native_group_norm_backward(grad, input, mean, rstd, ...): two values a group.
  MemoryRules operator()(const Normalization& norm) const {
    MemoryRules rules{.input_for_data = true, .input_for_weights = norm.affine};
    if (norm.over == Normalization::Over::layer) {
      rules.extra = "statistics";
      rules.extra_bytes =
          2 * 4 * values / static_cast<double>(norm.last_axis ? output.back() : output.front());
    } else if (norm.over == Normalization::Over::group) {
      rules.extra = "statistics";
      rules.extra_bytes = 2 * 4 * static_cast<double>(norm.groups);
    }
    return rules;
  }

  /// A composite of pooling, power and division: input and scales.
  MemoryRules operator()(const LocalResponseNorm&) const {
    return {.input_for_data = true, .output_for_data = mxnet, .extra = "scales", .extra_bytes = 4 * values};
  }

  /// MXNet with cuDNN hands an activation's gradient its input and its result, so that it cannot overwrite
  /// (activation.cc; from 1.3 on not so for ReLU).
  MemoryRules operator()(const Activation& activation) const {
    if (mxnet) return {.input_for_data = true, .output_for_data = true, .gradient_overwrites = true};
    switch (activation.function) {
      case Activation::Function::relu:  // threshold_backward(grad, result, 0)
        return {.overwrites = true, .output_for_data = true};
      case Activation::Function::sigmoid:  // sigmoid_backward(grad, result)
      case Activation::Function::tanh:     // tanh_backward(grad, result)
      case Activation::Function::softmax:  // _softmax_backward_data(grad, result, ...)
        return {.output_for_data = true};
      case Activation::Function::relu6:  // hardtanh_backward(grad, self, ...), in place as it says below
        // PyTorch 1's in-place form had a formula of its own: hardtanh_backward(grad, result, ...).
        if (framework == Framework::pytorch1) return {.overwrites = true, .output_for_data = true};
        return {.input_for_data = true};
      case Activation::Function::leaky_relu:   // leaky_relu_backward(grad, self, ...)
      case Activation::Function::hardswish:    // hardswish_backward(grad, self)
      case Activation::Function::hardsigmoid:  // hardsigmoid_backward(grad, self)
      case Activation::Function::silu:         // silu_backward(grad, self)
      case Activation::Function::gelu:         // gelu_backward(grad, self, ...)
        // Their in-place forms keep a copy of the input, so in place or not, input and result are two
        // storages.
        return {.input_for_data = true};
    }
    return {};
  }

  /// max_pool2d_with_indices_backward(grad, self, ..., result1): input and int64 indices.
  /// avg_pool2d_backward(grad, self, ...) keeps its input as well. MXNet: input and result, which cuDNN takes
  /// in place of indices (pooling.cc).
  MemoryRules operator()(const Pool& pool) const {
    if (mxnet) return {.input_for_data = true, .output_for_data = true};
    if (pool.mode == Pool::Mode::average) return {.input_for_data = true};
    return {.input_for_data = true, .extra = "indices", .extra_bytes = 8 * values};
  }

  /// max_pool3d_with_indices_backward and avg_pool3d_backward keep the same as their like of images.
  MemoryRules operator()(const Pool3d& pool) const {
    return pool.mode == Pool::Mode::average
               ? MemoryRules{.input_for_data = true}
               : MemoryRules{.input_for_data = true, .extra = "indices", .extra_bytes = 8 * values};
  }

  /// _roi_align_backward(grad, rois, ...): the regions alone.
  MemoryRules operator()(const RoiAlign&) const { return {}; }
  MemoryRules operator()(const SideInput&) const { return {}; }

  /// Tensors of the loss's size that saved_tensors_hooks sees beside the input, counted as in loss_passes.
  MemoryRules operator()(const DetectionLoss& loss) const {
    const double of = loss.share * static_cast<double>(elements(last_input));
    switch (loss.function) {
      case DetectionLoss::Function::focal:
        return {.input_for_data = true, .extra = "factors", .extra_bytes = 4 * 7 * of};
      case DetectionLoss::Function::cross_entropy:
        return {.extra = "log_probabilities", .extra_bytes = 4 * of};
      case DetectionLoss::Function::binary_cross_entropy:
      case DetectionLoss::Function::smooth_l1:
      case DetectionLoss::Function::squared_error:
        return {.input_for_data = true, .extra = "targets", .extra_bytes = 4 * of};
    }
    return {};
  }

  /// To [1, 1] it is mean(), which keeps only sizes; else _adaptive_avg_pool2d_backward(grad, self).
  MemoryRules operator()(const AdaptiveAvgPool& pool) const {
    if (mxnet) return {.input_for_data = true, .output_for_data = true};
    return {.input_for_data = pool.size != Size2{1, 1}};
  }

  /// mul(input, mask) with a float mask; MXNet in place (dropout-inl.h).
  MemoryRules operator()(const Dropout&) const {
    return {.overwrites = mxnet, .extra = "mask", .extra_bytes = 4 * values};
  }

  MemoryRules operator()(const Flatten&) const { return {.view = true}; }
  MemoryRules operator()(const Slice&) const { return {.view = true}; }
  MemoryRules operator()(const Concat&) const { return {}; }
  MemoryRules operator()(const ChannelShuffle&) const { return {}; }
  MemoryRules operator()(const Add&) const { return {}; }
  MemoryRules operator()(const Upsample&) const { return {}; }
  MemoryRules operator()(const Reshape&) const { return {.view = true}; }
  MemoryRules operator()(const Transpose&) const { return {.view = true}; }
  MemoryRules operator()(const Pad&) const { return {}; }

  /// mm: each input for the other's gradient.
  MemoryRules operator()(const MatMul&) const { return {.input_for_data = true}; }

  MemoryRules operator()(const Elementwise& any) const {
    return {.input_for_data = any.keeps_inputs, .input_for_weights = any.keeps_inputs && any.parameters > 0};
  }

  /// mul: each input for the other's gradient.
  MemoryRules operator()(const Multiply&) const { return {.input_for_data = true}; }
  MemoryRules operator()(const Scale&) const { return {.input_for_weights = true}; }

  /// Taken to need its input, as any layer with weights does.
  MemoryRules operator()(const Custom&) const { return {.input_for_data = true, .input_for_weights = true}; }
};

}  // namespace

MemoryRules memory_rules(const Model& model, std::size_t index, Framework framework) {
  const Layer& layer = model.layers[index];
  const Shape& last = layer.inputs.empty() ? layer.output : model.shape_of(layer.inputs.back());
  return std::visit(Rules{layer.output, framework, last}, layer.kind);
}

}  // namespace convoy::models
