// SPDX-License-Identifier: MIT
#include "models/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "models/attention.h"

namespace convoy::inline models {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 53;  // whole in a double

/// Shape rules, one overload a kind. A rule sets output, parameters and macs.
class Inference {
 public:
  Inference(Layer& layer, const std::vector<Shape>& inputs) : layer_(layer), inputs_(inputs) {}

  void operator()(const Conv2d& conv) {
    const Shape& in = image();
    check_groups(in[0], conv.out_channels, conv.groups);
    const std::int64_t h =
        window(in[1], conv.kernel.h, conv.stride.h, conv.padding.h, conv.dilation.h, "height");
    const std::int64_t w =
        window(in[2], conv.kernel.w, conv.stride.w, conv.padding.w, conv.dilation.w, "width");
    layer_.output = {conv.out_channels, h, w};
    const std::int64_t per_output = product({in[0] / conv.groups, conv.kernel.h, conv.kernel.w});
    weights(product({conv.out_channels, per_output}), conv.bias ? conv.out_channels : 0);
    layer_.macs = product({conv.out_channels, h, w, per_output});
  }

  void operator()(const ConvTranspose2d& conv) {
    const Shape& in = image();
    check_groups(in[0], conv.out_channels, conv.groups);
    const std::int64_t h = transposed(in[1], conv.kernel.h, conv.stride.h, conv.padding.h, conv.dilation.h,
                                      conv.output_padding.h);
    const std::int64_t w = transposed(in[2], conv.kernel.w, conv.stride.w, conv.padding.w, conv.dilation.w,
                                      conv.output_padding.w);
    layer_.output = {conv.out_channels, h, w};
    const std::int64_t per_input = product({conv.out_channels / conv.groups, conv.kernel.h, conv.kernel.w});
    weights(product({in[0], per_input}), conv.bias ? conv.out_channels : 0);
    layer_.macs = product({in[0], in[1], in[2], per_input});
  }

  void operator()(const Linear& linear) {
    const Shape& in = only();
    if (linear.last_axis && linear.channels) fail("last_axis and channels are two axes; give one of them");
    if (in.size() != 1 && !linear.last_axis && !linear.channels)
      fail(fmt::format("linear needs a vector of features, its input is {}; put a flatten before it",
                       to_string(in)));
    layer_.output = in;
    std::int64_t& features = linear.channels ? layer_.output.front() : layer_.output.back();
    weights(product({features, linear.out_features}), linear.bias ? linear.out_features : 0);
    features = linear.out_features;
    layer_.macs = product({product(in), linear.out_features});
  }

  void operator()(const Conv3d& conv) {
    const Shape& in = volume();
    check_groups(in[0], conv.out_channels, conv.groups);
    layer_.output = {conv.out_channels,
                     window(in[1], conv.kernel.d, conv.stride.d, conv.padding.d, conv.dilation.d, "depth"),
                     window(in[2], conv.kernel.h, conv.stride.h, conv.padding.h, conv.dilation.h, "height"),
                     window(in[3], conv.kernel.w, conv.stride.w, conv.padding.w, conv.dilation.w, "width")};
    const std::int64_t per_output =
        product({in[0] / conv.groups, conv.kernel.d, conv.kernel.h, conv.kernel.w});
    weights(product({conv.out_channels, per_output}), conv.bias ? conv.out_channels : 0);
    layer_.macs = product({product(layer_.output), per_output});
  }

  void operator()(const ConvTranspose3d& conv) {
    const Shape& in = volume();
    check_groups(in[0], conv.out_channels, conv.groups);
    layer_.output = {conv.out_channels,
                     transposed(in[1], conv.kernel.d, conv.stride.d, conv.padding.d, conv.dilation.d,
                                conv.output_padding.d),
                     transposed(in[2], conv.kernel.h, conv.stride.h, conv.padding.h, conv.dilation.h,
                                conv.output_padding.h),
                     transposed(in[3], conv.kernel.w, conv.stride.w, conv.padding.w, conv.dilation.w,
                                conv.output_padding.w)};
    const std::int64_t per_input =
        product({conv.out_channels / conv.groups, conv.kernel.d, conv.kernel.h, conv.kernel.w});
    weights(product({in[0], per_input}), conv.bias ? conv.out_channels : 0);
    layer_.macs = product({product(in), per_input});
  }

  void operator()(const DeformConv2d& conv) {
    several(2);
    const Shape& in = inputs_.front();
    if (in.size() != 3 || inputs_.size() > 3)
      fail(
          fmt::format("deform_conv2d needs an image, its offsets and at most factors, got {}", all_inputs()));
    check_groups(in[0], conv.out_channels, conv.groups);
    const std::int64_t h =
        window(in[1], conv.kernel.h, conv.stride.h, conv.padding.h, conv.dilation.h, "height");
    const std::int64_t w =
        window(in[2], conv.kernel.w, conv.stride.w, conv.padding.w, conv.dilation.w, "width");
    const std::int64_t area = product({conv.kernel.h, conv.kernel.w});
    for (std::size_t k = 1; k < inputs_.size(); ++k) {
      const std::int64_t each = k == 1 ? product({2, area}) : area;
      const Shape& map = inputs_[k];
      if (map.size() != 3 || map[0] % each != 0 || map[1] != h || map[2] != w)
        fail(fmt::format("the {} of a {} x {} window are [{} or a multiple, {}, {}], got {}",
                         k == 1 ? "offsets" : "factors", conv.kernel.h, conv.kernel.w, each, h, w,
                         to_string(map)));
    }
    layer_.output = {conv.out_channels, h, w};
    const std::int64_t per_output = product({in[0] / conv.groups, area});
    weights(product({conv.out_channels, per_output}), conv.bias ? conv.out_channels : 0);
    layer_.macs = product({conv.out_channels, h, w, per_output});
  }

  void operator()(const Attention& attention) {
    several(1);
    if (inputs_.size() != 1 && inputs_.size() != 3)
      fail(fmt::format("attention reads one input of queries, keys and values, or three; got {}",
                       all_inputs()));
    const Shape &queries = inputs_.front(), &keys = inputs_.back();
    layer_.output = queries;
    if (inputs_.size() == 1) {
      if (queries[0] % 3 != 0)
        fail(fmt::format("the {} channels of an input {} are not queries, keys and values of one size",
                         queries[0], to_string(queries)));
      layer_.output[0] = queries[0] / 3;
    } else if (inputs_[1] != keys || keys[0] != queries[0]) {
      fail(
          fmt::format("attention needs queries, keys and values of as many channels, and as many keys as "
                      "values, got {}",
                      all_inputs()));
    }
    const std::int64_t channels = layer_.output[0];
    if (channels % attention.heads != 0)
      fail(fmt::format("{} channels cannot be divided into {} heads", channels, attention.heads));
    const bool windows = attention.window.h > 0;
    if (windows && (inputs_.size() != 1 || queries.size() != 3))
      fail(fmt::format("windows are of one input [channels, height, width], got {}", all_inputs()));
    if (!windows && (attention.shift || attention.position_bias))
      fail("shift and position_bias are of windows; give window too");
    if (attention.position_units > 0 && !attention.position_bias)
      fail("position_units are of position_bias; give position_bias too");
    if (attention.cosine && attention.scores == Attention::Scores::recomputed)
      fail("no kernel computes the scores of cosine attention again; give scores: kept, or leave it out");
    if (attention.cosine) layer_.parameters.push_back({ParameterRole::weight, attention.heads});
    if (attention.position_bias) add_position_terms(attention);
    const AttentionSizes sizes = attention_sizes(attention, layer_.output, keys);
    layer_.macs = product({2, channels, sizes.queries, sizes.keys});
  }

  void operator()(const ClassToken& token) {
    const Shape& in = only();
    layer_.output = {in[0], elements(in) / in[0] + token.tokens};
    layer_.parameters = {{ParameterRole::weight, product({layer_.output[0], token.tokens})}};
  }

  void operator()(const PositionEmbedding&) {
    layer_.output = only();
    layer_.parameters = {{ParameterRole::weight, product(layer_.output)}};
  }

  void operator()(const FrozenBatchNorm&) { layer_.output = only(); }

  void operator()(const Pool3d& pool) {
    const Shape& in = volume();
    layer_.output = {in[0], window(in[1], pool.kernel.d, pool.stride.d, pool.padding.d, 1, "depth"),
                     window(in[2], pool.kernel.h, pool.stride.h, pool.padding.h, 1, "height"),
                     window(in[3], pool.kernel.w, pool.stride.w, pool.padding.w, 1, "width")};
  }

  void operator()(const RoiAlign& roi) {
    several(1);
    for (const Shape& in : inputs_)
      if (in.size() != 3 || in[0] != inputs_.front()[0])
        fail(fmt::format("roi_align needs inputs [channels, height, width] of as many channels, got {}",
                         all_inputs()));
    layer_.output = {inputs_.front()[0], product({roi.rois, roi.size.h}), roi.size.w};
  }

  void operator()(const SideInput& side) { layer_.output = side.output; }

  void operator()(const DetectionLoss&) {
    only();
    layer_.output = {1};
  }

  void operator()(const Normalization& norm) {
    layer_.output = only();
    const std::int64_t channels = norm.last_axis ? layer_.output.back() : layer_.output.front();
    if (channels % norm.groups != 0)
      fail(fmt::format("{} input channels cannot be divided into {} groups", channels, norm.groups));
    if (norm.affine) weights(channels, channels);
  }

  void operator()(const LocalResponseNorm&) { layer_.output = only(); }
  void operator()(const Activation&) { layer_.output = only(); }
  void operator()(const Dropout&) { layer_.output = only(); }

  void operator()(const Pool& pool) {
    const Shape& in = image();
    layer_.output = {in[0], pooled(in[1], pool.kernel.h, pool.stride.h, pool.padding.h, pool.ceil, "height"),
                     pooled(in[2], pool.kernel.w, pool.stride.w, pool.padding.w, pool.ceil, "width")};
  }

  void operator()(const AdaptiveAvgPool& pool) { layer_.output = {image()[0], pool.size.h, pool.size.w}; }

  void operator()(const Flatten&) { layer_.output = {product(only())}; }

  void operator()(const Concat& concat) {
    several(2);
    Shape out = inputs_.front();
    const auto axis = static_cast<std::size_t>(concat.axis);
    if (axis >= out.size()) fail(fmt::format("concat along axis {} of {}", axis, all_inputs()));
    out[axis] = 0;
    for (Shape in : inputs_) {
      const std::int64_t size = axis < in.size() ? std::exchange(in[axis], out[axis]) : 0;
      if (in != out)
        fail(fmt::format("concat needs inputs that differ in {} only, got {}",
                         axis == 0 ? "channels" : fmt::format("axis {}", axis), all_inputs()));
      out[axis] += size;
      product(out);
    }
    layer_.output = out;
  }

  void operator()(const Slice& slice) {
    layer_.output = only();
    const auto axis = static_cast<std::size_t>(slice.axis);
    if (axis >= layer_.output.size())
      fail(fmt::format("slice along axis {} of an input {}", axis, to_string(layer_.output)));
    if (slice.last == 0) {
      if (slice.first >= layer_.output[axis])
        fail(fmt::format("slice from index {} of an input {}", slice.first, to_string(layer_.output)));
      std::get<Slice>(layer_.kind).last = layer_.output[axis];
    }
    if (slice.last > layer_.output[axis])
      fail(fmt::format("slice up to {} {} of an input {}", axis == 0 ? "channel" : "index", slice.last,
                       to_string(layer_.output)));
    layer_.output[axis] = (slice.last - slice.first + slice.step - 1) / slice.step;
  }

  void operator()(const ChannelShuffle& shuffle) {
    layer_.output = image();
    if (layer_.output[0] % shuffle.groups != 0)
      fail(fmt::format("{} input channels cannot be divided into {} groups", layer_.output[0],
                       shuffle.groups));
  }

  void operator()(const Add&) {
    several(2);
    layer_.output = broadcast();
  }

  void operator()(const Multiply&) {
    several(2);
    if (inputs_.size() != 2) fail(fmt::format("multiply needs two inputs, got {}", all_inputs()));
    layer_.output = broadcast();
  }

  void operator()(const Scale&) {
    layer_.output = only();
    layer_.parameters = {{ParameterRole::weight, layer_.output[0]}};
  }

  void operator()(const Upsample& upsample) {
    const Shape& in = image();
    layer_.output = upsample.size.h > 0
                        ? Shape{in[0], upsample.size.h, upsample.size.w}
                        : Shape{in[0], product({in[1], upsample.scale}), product({in[2], upsample.scale})};
  }

  void operator()(const Reshape& reshape) {
    const Shape& in = only();
    if (product(in) != product(reshape.output))
      fail(fmt::format("reshape of {} to {}, which has another number of values", to_string(in),
                       to_string(reshape.output)));
    layer_.output = reshape.output;
  }

  void operator()(const Transpose& transpose) {
    const Shape& in = only();
    Shape sorted = transpose.axes, all(in.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all)
      fail(fmt::format("axes {} are not those of an input {} in another order", to_string(transpose.axes),
                       to_string(in)));
    layer_.output.clear();
    for (const std::int64_t axis : transpose.axes)
      layer_.output.push_back(in[static_cast<std::size_t>(axis)]);
  }

  void operator()(const Pad& pad) {
    const Shape& in = image();
    layer_.output = {in[0], in[1] + pad.top + pad.bottom, in[2] + pad.left + pad.right};
  }

  void operator()(const MatMul&) {
    several(2);
    const Shape &a = inputs_[0], &b = inputs_[1];
    const std::size_t n = a.size();
    if (inputs_.size() != 2 || n < 2 || b.size() != n || a[n - 1] != b[n - 2] ||
        !std::equal(a.begin(), a.end() - 2, b.begin()))
      fail(fmt::format("matmul needs inputs [..., m, k] and [..., k, n], got {}", all_inputs()));
    layer_.output = a;
    layer_.output.back() = b.back();
    layer_.macs = product({product(a), b.back()});
  }

  void operator()(const Elementwise& elementwise) {
    several(1);
    layer_.output = elementwise.output.empty() ? inputs_.front() : elementwise.output;
    if (elementwise.parameters > 0) layer_.parameters = {{ParameterRole::weight, elementwise.parameters}};
  }

  void operator()(const Custom& custom) {
    layer_.output = custom.output;
    if (custom.parameters > 0) layer_.parameters = {{ParameterRole::weight, custom.parameters}};
  }

  void check_size() { product(layer_.output); }

 private:
  /// A table of a term a relative position and head, or the perceptron that computes it from two coordinates:
  /// its first layer has a bias, its second has none (Swin V2; torchvision's cpb_mlp).
  void add_position_terms(const Attention& attention) {
    const std::int64_t units = attention.position_units;
    if (units == 0) {
      layer_.parameters.push_back(
          {ParameterRole::weight,
           product({2 * attention.window.h - 1, 2 * attention.window.w - 1, attention.heads})});
      return;
    }
    layer_.parameters.push_back({ParameterRole::weight, product({2, units})});
    layer_.parameters.push_back({ParameterRole::bias, units});
    layer_.parameters.push_back({ParameterRole::weight, product({units, attention.heads})});
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(layer_.pos, fmt::format("layer '{}': {}", layer_.name, message));
  }

  std::int64_t product(std::initializer_list<std::int64_t> factors) const { return product(Shape(factors)); }
  std::int64_t product(const Shape& factors) const {
    std::int64_t result = 1;
    for (const std::int64_t factor : factors)
      if (__builtin_mul_overflow(result, factor, &result) || result > max_count)
        fail("is too large: more than 2^53 values or multiply-adds an image");
    return result;
  }

  const Shape& only() const {
    if (inputs_.size() != 1)
      fail(fmt::format("{} reads one input, {} are given", kind_name(layer_.kind), inputs_.size()));
    return inputs_.front();
  }

  const Shape& image() const {
    const Shape& in = only();
    if (in.size() != 3)
      fail(fmt::format("{} needs an input [channels, height, width], its input is {}", kind_name(layer_.kind),
                       to_string(in)));
    return in;
  }

  const Shape& volume() const {
    const Shape& in = only();
    if (in.size() != 4)
      fail(fmt::format("{} needs an input [channels, depth, height, width], its input is {}",
                       kind_name(layer_.kind), to_string(in)));
    return in;
  }

  /// The shape that inputs of size 1 grow to along each axis.
  Shape broadcast() const {
    Shape out = inputs_.front();
    for (const Shape& in : inputs_) {
      bool fits = in.size() == out.size();
      for (std::size_t i = 0; fits && i < out.size(); ++i) {
        fits = in[i] == out[i] || in[i] == 1 || out[i] == 1;
        out[i] = std::max(out[i], in[i]);
      }
      if (!fits)
        fail(fmt::format("{} needs inputs of one shape, or of size 1 where another is larger, got {}",
                         kind_name(layer_.kind), all_inputs()));
    }
    return out;
  }

  void several(std::size_t least) const {
    if (inputs_.size() < least)
      fail(fmt::format("{} reads {} inputs or more, {} is given; name them with `inputs: [a, b]`",
                       kind_name(layer_.kind), least, inputs_.size()));
  }

  std::string all_inputs() const {
    std::string text;
    for (const Shape& in : inputs_) text += (text.empty() ? "" : " and ") + to_string(in);
    return text;
  }

  void weights(std::int64_t weight, std::int64_t bias) {
    layer_.parameters = {{ParameterRole::weight, weight}};
    if (bias > 0) layer_.parameters.push_back({ParameterRole::bias, bias});
  }

  void check_groups(std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups) const {
    if (in_channels % groups != 0)
      fail(fmt::format("{} input channels cannot be divided into {} groups", in_channels, groups));
    if (out_channels % groups != 0)
      fail(fmt::format("{} output channels cannot be divided into {} groups", out_channels, groups));
  }

  /// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1; Dumoulin & Visin, arXiv:1603.07285,
  /// section 4.
  std::int64_t window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                      std::int64_t dilation, const char* side) const {
    const std::int64_t padded = in + 2 * padding;
    const std::int64_t reach = dilation * (kernel - 1) + 1;
    if (reach > padded)
      fail(fmt::format("the kernel spans {} in {}, the padded input has {}", reach, side, padded));
    return (padded - reach) / stride + 1;
  }

  /// (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1; PyTorch, ConvTranspose2d.
  std::int64_t transposed(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                          std::int64_t dilation, std::int64_t output_padding) const {
    if (output_padding > 0 && output_padding >= stride)
      fail("output_padding must be smaller than the stride");
    const std::int64_t out =
        product({in - 1, stride}) - 2 * padding + dilation * (kernel - 1) + 1 + output_padding;
    if (out < 1)
      fail(fmt::format("padding {} leaves nothing of the output of an input {}", padding,
                       to_string(inputs_.front())));
    return out;
  }

  /// As PyTorch: with `ceil` the last window must still begin inside the input or its left padding.
  std::int64_t pooled(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                      bool ceil, const char* side) const {
    const std::int64_t down = window(in, kernel, stride, padding, 1, side);
    if (!ceil || (in + 2 * padding - kernel) % stride == 0) return down;
    return down * stride >= in + padding ? down : down + 1;
  }

  Layer& layer_;
  const std::vector<Shape>& inputs_;
};

}  // namespace

void infer_shape(Layer& layer, const std::vector<Shape>& inputs) {
  Inference inference(layer, inputs);
  std::visit(inference, layer.kind);
  inference.check_size();
}

}  // namespace convoy::models
