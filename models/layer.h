// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline models {

/// Shape of one image's tensor, without the batch dimension: {channels, height, width} or {features}.
using Shape = std::vector<std::int64_t>;
std::int64_t elements(const Shape& shape);
/// "[64, 56, 56]"
std::string to_string(const Shape& shape);

/// Height and width of a kernel, stride, padding or dilation.
struct Size2 {
  std::int64_t h = 1, w = 1;
  bool operator==(const Size2&) const = default;
};

/// The same with depth, of volumes.
struct Size3 {
  std::int64_t d = 1, h = 1, w = 1;
  bool operator==(const Size3&) const = default;
};

// The closed set of layer kinds; fields are the keys of the YAML entry (docs/models.md). One kind costs one
// struct here, one row in layer_registry.cpp, and its rules in shapes.cpp and layer_costs.cpp.

struct Conv2d {
  std::int64_t out_channels = 0;
  Size2 kernel, stride, padding{0, 0}, dilation;
  std::int64_t groups = 1;
  bool bias = true;
  bool l2_loss = false;  ///< the sum of the squares of its weights is part of the loss
  bool operator==(const Conv2d&) const = default;
};

struct ConvTranspose2d {
  std::int64_t out_channels = 0;
  Size2 kernel, stride, padding{0, 0}, output_padding{0, 0};
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation;
  bool operator==(const ConvTranspose2d&) const = default;
};

struct Linear {
  std::int64_t out_features = 0;
  bool bias = true;
  bool last_axis = false;  ///< of any tensor, at each place along the other axes; else of a vector
  bool channels = false;   ///< the same of the first axis: on each token or pixel
  bool l2_loss = false;    ///< the sum of the squares of its weights is part of the loss
  bool operator==(const Linear&) const = default;
};

/// Convolution of volumes, [channels, depth, height, width].
struct Conv3d {
  std::int64_t out_channels = 0;
  Size3 kernel, stride, padding{0, 0, 0}, dilation;
  std::int64_t groups = 1;
  bool bias = true;
  bool operator==(const Conv3d&) const = default;
};

struct ConvTranspose3d {
  std::int64_t out_channels = 0;
  Size3 kernel, stride, padding{0, 0, 0}, output_padding{0, 0, 0};
  std::int64_t groups = 1;
  bool bias = true;
  Size3 dilation;
  bool operator==(const ConvTranspose3d&) const = default;
};

/// A convolution whose windows are shifted value by value: Dai et al., arXiv:1703.06211, section 2.1. Reads
/// the image, the offsets (two a weight of a window and place), and the factors of version 2, if any.
struct DeformConv2d {
  std::int64_t out_channels = 0;
  Size2 kernel, stride, padding{0, 0}, dilation;
  std::int64_t groups = 1;
  bool bias = true;
  bool operator==(const DeformConv2d&) const = default;
};

/// Scaled dot-product attention (Vaswani et al., arXiv:1706.03762, section 3.2) without the linear layers
/// around it. Reads queries, keys and values, three inputs [channels, tokens...], or one of three times the
/// channels: for each head, one after the other, its queries, keys and values.
struct Attention {
  /// Whether the softmax of the scores is written and kept for the backward pass, by kernels of its own, or
  /// one kernel computes all and the backward pass computes it again (Dao et al., arXiv:2205.14135).
  enum class Scores : std::uint8_t { of_framework, kept, recomputed };
  std::int64_t heads = 1;
  Size2 window{0, 0};          ///< where not 0: of pixels, among which alone there is attention (Swin)
  bool shift = false;          ///< windows are shifted by half their size, and masked at the borders
  bool position_bias = false;  ///< a learned term for each relative position in a window and head
  /// Hidden units of the perceptron that computes these terms from the coordinates (Swin V2); 0: they are a table.
  std::int64_t position_units = 0;
  /// Queries and keys are divided by their norms, and scores are multiplied by a learned factor a head instead of
  /// the root of a head's channels (Liu et al., "Swin Transformer V2", arXiv:2111.09883, section 3.3).
  bool cosine = false;
  Scores scores = Scores::of_framework;
  bool operator==(const Attention&) const = default;
};

/// Learned tokens before those of the input, [channels, tokens...]; the output is [channels, tokens].
struct ClassToken {
  std::int64_t tokens = 1;
  bool operator==(const ClassToken&) const = default;
};

/// A learned term for every value of the input.
struct PositionEmbedding {
  bool operator==(const PositionEmbedding&) const = default;
};

/// Normalization with a learned scale and shift a channel unless `affine` is false: batch (over images and
/// places), layer (over channels), group (over places and the channels of a group; as many groups as channels
/// is instance normalization).
struct Normalization {
  enum class Over : std::uint8_t { batch, layer, group };
  Over over = Over::batch;
  bool affine = true;
  bool last_axis = false;   ///< layer: channels are the last axis, not the first
  std::int64_t groups = 1;  ///< group
  bool operator==(const Normalization&) const = default;
};

/// Batch normalization of a network that keeps its statistics, scale and shift as they are: a fixed factor
/// and term a channel (torchvision's FrozenBatchNorm2d).
struct FrozenBatchNorm {
  bool operator==(const FrozenBatchNorm&) const = default;
};

/// Krizhevsky et al., NIPS 2012, section 3.3.
struct LocalResponseNorm {
  std::int64_t size = 5;
  bool operator==(const LocalResponseNorm&) const = default;
};

struct Activation {
  enum class Function : std::uint8_t {
    relu,
    relu6,
    leaky_relu,
    hardswish,
    hardsigmoid,
    silu,
    gelu,
    sigmoid,
    tanh,
    softmax
  };
  Function function = Function::relu;
  bool operator==(const Activation&) const = default;
};

struct Pool {
  enum class Mode : std::uint8_t { max, average };
  Mode mode = Mode::max;
  Size2 kernel, stride, padding{0, 0};
  bool ceil = false;  ///< round the output size up instead of down
  bool operator==(const Pool&) const = default;
};

struct Pool3d {
  Pool::Mode mode = Pool::Mode::max;
  Size3 kernel, stride, padding{0, 0, 0};
  bool operator==(const Pool3d&) const = default;
};

struct AdaptiveAvgPool {
  Size2 size;
  bool operator==(const AdaptiveAvgPool&) const = default;
};

struct Dropout {
  double rate = 0.5;
  bool operator==(const Dropout&) const = default;
};

struct Flatten {
  bool operator==(const Flatten&) const = default;
};

/// Along an axis, by default the channels.
struct Concat {
  std::int64_t axis = 0;
  bool operator==(const Concat&) const = default;
};

/// Indices first, first + step, ... below last along an axis, by default of the channels. A last of 0 is
/// written to mean the end of the axis, and is that once the shape is known.
struct Slice {
  std::int64_t first = 0, last = 0, axis = 0, step = 1;
  bool operator==(const Slice&) const = default;
};

struct ChannelShuffle {
  std::int64_t groups = 2;
  bool operator==(const ChannelShuffle&) const = default;
};

/// Sum of tensors of one shape, or of size 1 where others are larger.
struct Add {
  bool operator==(const Add&) const = default;
};

/// Product of two tensors of one shape, or of size 1 where the other is larger (squeeze and excitation).
struct Multiply {
  bool operator==(const Multiply&) const = default;
};

/// A learned factor a channel (ConvNeXt's layer scale).
struct Scale {
  bool operator==(const Scale&) const = default;
};

struct Upsample {
  std::int64_t scale = 2;
  Size2 size{0, 0};  ///< where not 0: the height and width to reach, `scale` means nothing
  bool operator==(const Upsample&) const = default;
};

/// The same values under another shape; a view.
struct Reshape {
  Shape output;
  bool operator==(const Reshape&) const = default;
};

/// Axis i of the output is axis axes[i] of the input; a view.
struct Transpose {
  std::vector<std::int64_t> axes;
  bool operator==(const Transpose&) const = default;
};

/// Zeros around height and width.
struct Pad {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool operator==(const Pad&) const = default;
};

/// Product of two tensors of matrices, [..., m, k] by [..., k, n].
struct MatMul {
  bool operator==(const MatMul&) const = default;
};

/// Bilinear samples of a stated number of regions of an image, from one of the maps it reads: He et al.,
/// arXiv:1703.06870, section 3. The output has the regions one below the other, as one image.
struct RoiAlign {
  std::int64_t rois = 0;  ///< of an image
  Size2 size;
  std::int64_t sampling = 2;  ///< samples a side of each value, of which the mean is taken
  bool operator==(const RoiAlign&) const = default;
};

/// What comes with an image besides it: a text's encoding, a time step.
struct SideInput {
  Shape output;
  bool operator==(const SideInput&) const = default;
};

/// A loss of a detector, or of a network that predicts noise, on its input, by kernels that each read and write tensors of the input's size, or of
/// a stated part of it.
struct DetectionLoss {
  enum class Function : std::uint8_t { focal, cross_entropy, binary_cross_entropy, smooth_l1, squared_error };
  Function function = Function::focal;
  double share = 1;  ///< of the input's values that the loss is of
  bool operator==(const DetectionLoss&) const = default;
};

/// Any operation that reads its inputs once and writes its output once: what has no kind of its own.
struct Elementwise {
  Shape output;  ///< empty: the first input's
  std::int64_t parameters = 0;
  bool keeps_inputs = true;  ///< until its backward pass
  bool operator==(const Elementwise&) const = default;
};

/// A layer given by its costs, per image.
struct Custom {
  double forward_flops = 0, backward_flops = 0;
  std::int64_t parameters = 0;
  Shape output;
  double memory_bytes = 0;  ///< memory traffic of the forward pass, and again of the backward pass
  double forward_s = 0, backward_s = 0;  ///< measured times, on any device; instead of FLOPs and traffic
  bool operator==(const Custom&) const = default;
};

using LayerKind =
    std::variant<Conv2d, ConvTranspose2d, DeformConv2d, Conv3d, ConvTranspose3d, Linear, Attention,
                 ClassToken, PositionEmbedding, Normalization, FrozenBatchNorm, LocalResponseNorm, Activation,
                 Pool, Pool3d, AdaptiveAvgPool, Dropout, Flatten, Concat, Slice, ChannelShuffle, Add,
                 Multiply, Scale, Upsample, Reshape, Transpose, Pad, MatMul, RoiAlign, SideInput,
                 DetectionLoss, Elementwise, Custom>;

/// The word of the YAML key `kind`: "conv2d", "relu", "max_pool".
std::string_view kind_name(const LayerKind& kind);

enum class ParameterRole : std::uint8_t { weight, bias };
inline constexpr std::array<std::string_view, 2> parameter_role_names{"weight", "bias"};
inline std::string_view to_string(ParameterRole role) {
  return parameter_role_names[static_cast<std::size_t>(role)];
}

struct ParameterTensor {
  ParameterRole role = ParameterRole::weight;
  std::int64_t elements = 0;
  bool operator==(const ParameterTensor&) const = default;
};

/// Where a layer reads: an index into Model::layers, or the image.
using LayerIndex = std::int32_t;
inline constexpr LayerIndex image_input = -1;

struct Layer {
  std::string name;
  LayerKind kind;
  std::vector<LayerIndex> inputs;  ///< all smaller than the layer's own index
  Shape output;
  std::vector<ParameterTensor> parameters;
  std::int64_t macs = 0;  ///< multiply-adds of a convolution, linear layer or product, one image, forward
  bool frozen = false;    ///< its parameters are not trained
  SourcePos pos;          ///< where it was written
  /// A layer before it, of the same kind, whose parameters it uses instead of its own; else image_input. It has none in
  /// `parameters` then, so that they count once, and the gradients of all that use them are added up.
  LayerIndex weights_of = image_input;
  std::int64_t shared_elements = 0;  ///< values of those

  /// Of its own parameters.
  std::int64_t parameter_elements() const;
  bool shares() const { return weights_of != image_input; }
  /// Whether it uses parameters that are trained.
  bool trains() const { return (!parameters.empty() || shares()) && !frozen; }
};

}  // namespace convoy::models
