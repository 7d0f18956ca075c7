// SPDX-License-Identifier: MIT
#include "models/layer_registry.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <type_traits>

#include "sim/base/names.h"

namespace convoy {
namespace {

constexpr std::int64_t max_size = 1'000'000'000;
constexpr std::int64_t max_axes = 8;

/// A key that is one number or [height, width].
Size2 size2_or(YamlMap& map, std::string_view key, Size2 fallback, std::int64_t min) {
  const YamlNode* node = map.find(key);
  if (!node) return fallback;
  if (node->kind == YamlNode::Kind::scalar) {
    const std::int64_t both = map.integer(key, min, max_size);
    return {both, both};
  }
  if (node->kind != YamlNode::Kind::sequence || node->items.size() != 2)
    map.fail(key, fmt::format("expected a whole number or [height, width], found {}", describe(*node)));
  const auto item = [&](std::size_t i) {
    return read_integer(node->items[i], fmt::format("{}[{}]", map.path_of(key), i), min, max_size);
  };
  return {item(0), item(1)};
}

Size2 size2(YamlMap& map, std::string_view key) {
  map.node(key);  // required
  return size2_or(map, key, {}, 1);
}

LayerKind read_conv2d(YamlMap& map) {
  Conv2d conv;
  conv.out_channels = map.integer("out_channels", 1, max_size);
  conv.kernel = size2(map, "kernel");
  conv.stride = size2_or(map, "stride", {1, 1}, 1);
  conv.padding = size2_or(map, "padding", {0, 0}, 0);
  conv.dilation = size2_or(map, "dilation", {1, 1}, 1);
  conv.groups = map.integer_or("groups", 1, 1, max_size);
  conv.bias = map.flag_or("bias", true);
  return conv;
}

LayerKind read_conv_transpose2d(YamlMap& map) {
  ConvTranspose2d conv;
  conv.out_channels = map.integer("out_channels", 1, max_size);
  conv.kernel = size2(map, "kernel");
  conv.stride = size2_or(map, "stride", {1, 1}, 1);
  conv.padding = size2_or(map, "padding", {0, 0}, 0);
  conv.output_padding = size2_or(map, "output_padding", {0, 0}, 0);
  conv.groups = map.integer_or("groups", 1, 1, max_size);
  conv.bias = map.flag_or("bias", true);
  conv.dilation = size2_or(map, "dilation", {1, 1}, 1);
  return conv;
}

LayerKind read_linear(YamlMap& map) {
  Linear linear;
  linear.out_features = map.integer("out_features", 1, max_size);
  linear.bias = map.flag_or("bias", true);
  linear.last_axis = map.flag_or("last_axis", false);
  return linear;
}

LayerKind read_batch_norm(YamlMap& map) {
  return Normalization{Normalization::Over::batch, map.flag_or("affine", true)};
}

LayerKind read_layer_norm(YamlMap& map) {
  return Normalization{Normalization::Over::layer, map.flag_or("affine", true),
                       map.flag_or("last_axis", false)};
}

LayerKind read_group_norm(YamlMap& map) {
  return Normalization{Normalization::Over::group, map.flag_or("affine", true), false,
                       map.integer("groups", 1, max_size)};
}

LayerKind read_local_response_norm(YamlMap& map) {
  return LocalResponseNorm{map.integer_or("size", 5, 1, max_size)};
}

template <Activation::Function function>
LayerKind read_activation(YamlMap&) {
  return Activation{function};
}

template <Pool::Mode mode>
LayerKind read_pool(YamlMap& map) {
  Pool pool;
  pool.mode = mode;
  pool.kernel = size2(map, "kernel");
  pool.stride = size2_or(map, "stride", pool.kernel, 1);
  pool.padding = size2_or(map, "padding", {0, 0}, 0);
  if (2 * pool.padding.h > pool.kernel.h || 2 * pool.padding.w > pool.kernel.w)
    map.fail("padding", "must be at most half the kernel, or windows would hold padding only");
  pool.ceil = map.flag_or("ceil", false);
  return pool;
}

LayerKind read_adaptive_avg_pool(YamlMap& map) { return AdaptiveAvgPool{size2_or(map, "size", {1, 1}, 1)}; }

LayerKind read_dropout(YamlMap& map) { return Dropout{map.number_or("rate", 0.5, 0, 1)}; }

LayerKind read_slice(YamlMap& map) {
  Slice slice;
  slice.first = map.integer("first", 0, max_size);
  slice.last = map.integer("last", 1, max_size);
  if (slice.last <= slice.first)
    map.fail("last", fmt::format("must be more than first, which is {}", slice.first));
  slice.axis = map.integer_or("axis", 0, 0, max_axes - 1);
  slice.step = map.integer_or("step", 1, 1, max_size);
  return slice;
}

LayerKind read_concat(YamlMap& map) { return Concat{map.integer_or("axis", 0, 0, max_axes - 1)}; }

LayerKind read_channel_shuffle(YamlMap& map) { return ChannelShuffle{map.integer("groups", 1, max_size)}; }

LayerKind read_upsample(YamlMap& map) {
  if (!map.has("size")) return Upsample{map.integer_or("scale", 2, 1, max_size)};
  if (map.has("scale")) map.fail("scale", "size is given too; give one of the two");
  return Upsample{1, size2(map, "size")};
}

Shape read_shape(YamlMap& map, std::string_view key) {
  const YamlNode& list = map.node(key);
  if (list.kind != YamlNode::Kind::sequence || list.items.empty() || list.items.size() > max_axes)
    map.fail(key, fmt::format("expected a shape such as [64, 8, 8] or [1000], found {}",
                              list.items.size() > max_axes ? "a longer list" : describe(list)));
  Shape shape;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    shape.push_back(read_integer(list.items[i], fmt::format("{}[{}]", map.path_of(key), i), 1, max_size));
  return shape;
}

LayerKind read_reshape(YamlMap& map) { return Reshape{read_shape(map, "output")}; }

LayerKind read_transpose(YamlMap& map) {
  const YamlNode& list = map.node("axes");
  const bool is_list = list.kind == YamlNode::Kind::sequence;
  if (!is_list || list.items.empty() || list.items.size() > max_axes)
    map.fail("axes",
             fmt::format("expected the axes of the input in their new order, such as [1, 2, 0], found {}",
                         is_list ? fmt::format("a list of {}", list.items.size()) : describe(list)));
  Transpose transpose;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    transpose.axes.push_back(
        read_integer(list.items[i], fmt::format("{}[{}]", map.path_of("axes"), i), 0, max_axes - 1));
  return transpose;
}

LayerKind read_pad(YamlMap& map) {
  Pad pad;
  pad.top = map.integer_or("top", 0, 0, max_size);
  pad.left = map.integer_or("left", 0, 0, max_size);
  pad.bottom = map.integer_or("bottom", 0, 0, max_size);
  pad.right = map.integer_or("right", 0, 0, max_size);
  return pad;
}

LayerKind read_elementwise(YamlMap& map) {
  Elementwise elementwise;
  if (map.has("output")) elementwise.output = read_shape(map, "output");
  elementwise.parameters = map.integer_or("parameters", 0, 0);
  elementwise.keeps_inputs = map.flag_or("keeps_inputs", true);
  return elementwise;
}

LayerKind read_custom(YamlMap& map) {
  Custom custom;
  if (map.has("forward_time") || map.has("backward_time")) {
    for (const char* key : {"forward_flops", "backward_flops", "memory_bytes"})
      if (map.has(key))
        map.fail(key, "forward_time and backward_time are the whole cost; give these, or FLOPs and bytes");
    custom.forward_s = map.quantity("forward_time", Dimension::time);
    custom.backward_s = map.quantity("backward_time", Dimension::time);
  } else {
    custom.forward_flops = map.number("forward_flops", 0);
    custom.backward_flops = map.number("backward_flops", 0);
    custom.memory_bytes = map.number_or("memory_bytes", 0, 0);
  }
  custom.parameters = map.integer_or("parameters", 0, 0);
  custom.output = read_shape(map, "output");
  return custom;
}

/// For kinds without keys.
template <typename Kind>
LayerKind read_plain(YamlMap&) {
  return Kind{};
}

using enum Activation::Function;

constexpr std::array entries{
    LayerEntry{"conv2d", "convolution, dense or grouped", read_conv2d},
    LayerEntry{"conv_transpose2d", "transposed convolution", read_conv_transpose2d},
    LayerEntry{"linear", "fully connected layer on a vector", read_linear},
    LayerEntry{"batch_norm", "batch normalization", read_batch_norm},
    LayerEntry{"layer_norm", "layer normalization over the channels", read_layer_norm},
    LayerEntry{"group_norm", "group normalization; instance normalization with a group a channel",
               read_group_norm},
    LayerEntry{"local_response_norm", "local response normalization across channels",
               read_local_response_norm},
    LayerEntry{"relu", "max(x, 0)", read_activation<relu>},
    LayerEntry{"relu6", "min(max(x, 0), 6)", read_activation<relu6>},
    LayerEntry{"leaky_relu", "x, or a fraction of it where negative", read_activation<leaky_relu>},
    LayerEntry{"hardswish", "x relu6(x + 3) / 6", read_activation<hardswish>},
    LayerEntry{"hardsigmoid", "relu6(x + 3) / 6", read_activation<hardsigmoid>},
    LayerEntry{"silu", "x sigmoid(x), also called swish", read_activation<silu>},
    LayerEntry{"gelu", "x times the normal distribution function of x", read_activation<gelu>},
    LayerEntry{"sigmoid", "1 / (1 + exp(-x))", read_activation<sigmoid>},
    LayerEntry{"tanh", "hyperbolic tangent", read_activation<Activation::Function::tanh>},
    LayerEntry{"softmax", "softmax over the channels", read_activation<softmax>},
    LayerEntry{"max_pool", "maximum of each window", read_pool<Pool::Mode::max>},
    LayerEntry{"avg_pool", "mean of each window", read_pool<Pool::Mode::average>},
    LayerEntry{"adaptive_avg_pool", "mean of windows chosen to give an output size", read_adaptive_avg_pool},
    LayerEntry{"dropout", "random zeros while training", read_dropout},
    LayerEntry{"flatten", "the input as a vector; a view, free of cost", read_plain<Flatten>},
    LayerEntry{"concat", "inputs one after the other along the channels, or another axis", read_concat},
    LayerEntry{"slice", "a range of channels, or along another axis; a view", read_slice},
    LayerEntry{"channel_shuffle", "channels of the groups interleaved", read_channel_shuffle},
    LayerEntry{"add", "sum of inputs of one shape, or of size 1 where others are larger", read_plain<Add>},
    LayerEntry{"multiply", "product of two inputs of one shape, or of size 1 where the other is larger",
               read_plain<Multiply>},
    LayerEntry{"scale", "a learned factor a channel", read_plain<Scale>},
    LayerEntry{"upsample", "height and width times a whole number, or to a size", read_upsample},
    LayerEntry{"reshape", "the same values under another shape; a view", read_reshape},
    LayerEntry{"transpose", "axes in another order; a view", read_transpose},
    LayerEntry{"pad", "zeros around height and width", read_pad},
    LayerEntry{"matmul", "product of two inputs of matrices", read_plain<MatMul>},
    LayerEntry{"elementwise", "anything that reads its inputs and writes its output once", read_elementwise},
    LayerEntry{"custom", "a layer given by its costs, per image", read_custom},
};

}  // namespace

std::span<const LayerEntry> layer_registry() { return entries; }

LayerKind read_layer_kind(YamlMap& map) {
  const std::string kind = map.text("kind");
  for (const LayerEntry& entry : entries)
    if (entry.kind == kind) return entry.read(map);
  std::vector<std::string> known;
  for (const LayerEntry& entry : entries) known.emplace_back(entry.kind);
  map.fail("kind", fmt::format("unknown layer kind '{}'{}; known: {}", kind, suggestion(kind, known),
                               list_of(known, known.size())));
}

std::string_view kind_name(const LayerKind& kind) {
  struct Name {
    std::string_view operator()(const Conv2d&) const { return "conv2d"; }
    std::string_view operator()(const ConvTranspose2d&) const { return "conv_transpose2d"; }
    std::string_view operator()(const Linear&) const { return "linear"; }
    std::string_view operator()(const Normalization& norm) const {
      static constexpr std::array<std::string_view, 3> names{"batch_norm", "layer_norm", "group_norm"};
      return names[static_cast<std::size_t>(norm.over)];
    }
    std::string_view operator()(const LocalResponseNorm&) const { return "local_response_norm"; }
    std::string_view operator()(const Activation& activation) const {
      static constexpr std::array<std::string_view, 10> names{
          "relu", "relu6", "leaky_relu", "hardswish", "hardsigmoid",
          "silu", "gelu",  "sigmoid",    "tanh",      "softmax"};
      return names[static_cast<std::size_t>(activation.function)];
    }
    std::string_view operator()(const Pool& pool) const {
      return pool.mode == Pool::Mode::max ? "max_pool" : "avg_pool";
    }
    std::string_view operator()(const AdaptiveAvgPool&) const { return "adaptive_avg_pool"; }
    std::string_view operator()(const Dropout&) const { return "dropout"; }
    std::string_view operator()(const Flatten&) const { return "flatten"; }
    std::string_view operator()(const Concat&) const { return "concat"; }
    std::string_view operator()(const Slice&) const { return "slice"; }
    std::string_view operator()(const ChannelShuffle&) const { return "channel_shuffle"; }
    std::string_view operator()(const Add&) const { return "add"; }
    std::string_view operator()(const Multiply&) const { return "multiply"; }
    std::string_view operator()(const Scale&) const { return "scale"; }
    std::string_view operator()(const Upsample&) const { return "upsample"; }
    std::string_view operator()(const Reshape&) const { return "reshape"; }
    std::string_view operator()(const Transpose&) const { return "transpose"; }
    std::string_view operator()(const Pad&) const { return "pad"; }
    std::string_view operator()(const MatMul&) const { return "matmul"; }
    std::string_view operator()(const Elementwise&) const { return "elementwise"; }
    std::string_view operator()(const Custom&) const { return "custom"; }
  };
  return std::visit(Name{}, kind);
}

}  // namespace convoy
